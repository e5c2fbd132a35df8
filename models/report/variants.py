"""The table of an encoder's small and fast forms: what each costs, and what it loses.

Shapes: N scored pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from models.evaluation.correlation import spearman
from models.evaluation.intervals import percentile_interval, spearman_resamples
from models.evaluation.paired import paired_difference

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Variant:
    """One form of an encoder.

    Attributes:
        name: What it is.
        place: Where it lies in the exported folder.
        megabytes: Its weights, 10⁶ bytes.
        width: Dimensions of its vectors.
        sentences_per_s: From text to vector, tokenizer included.
        cosines: (N,) of the scored pairs.
    """

    name: str
    place: str
    megabytes: float
    width: int
    sentences_per_s: float
    cosines: NDArray[np.float64]


def variant_rows(variants: Sequence[Variant], gold: NDArray[np.float64]) -> list[dict[str, str]]:
    """A row a form: score with its interval, and its loss against the first form on the same draws of pairs."""
    first = variants[0]
    return [
        {
            "form": form.name,
            "place": form.place,
            "MB": f"{form.megabytes:.1f}",
            "width": str(form.width),
            "sentences/s": f"{form.sentences_per_s:,.0f}",
            "times as fast": f"{form.sentences_per_s / first.sentences_per_s:.1f}",
            "STS-B test": _score(form.cosines, gold),
            "against the first": "" if form is first else _difference(first.cosines, form.cosines, gold),
        }
        for form in variants
    ]


def _score(cosines: NDArray[np.float64], gold: NDArray[np.float64]) -> str:
    low, high = percentile_interval(spearman_resamples(gold, cosines))
    return f"{100 * spearman(cosines, gold):.2f} [{100 * low:.1f}, {100 * high:.1f}]"


def _difference(first: NDArray[np.float64], second: NDArray[np.float64], gold: NDArray[np.float64]) -> str:
    found = paired_difference(first, second, gold)
    return f"{100 * found.value:+.2f} [{100 * found.ci_low:+.2f}, {100 * found.ci_high:+.2f}]"
