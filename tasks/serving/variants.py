"""Table of an encoder's small and fast forms, with cost and loss of each; the model card of a form.

Shapes: N scored pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from models.evaluation.correlation import spearman
from models.evaluation.signature import signed
from models.evaluation.significance.bootstrap import percentile_interval, spearman_resamples
from models.evaluation.significance.hierarchical import difference_of, draws_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray


_STATIC: Final = (
    "A table of token vectors, without a transformer: the vector of a sentence is the mean of its token vectors. Word "
    "order has no effect."
)
_FULL_ONLY: Final = {"model_name", "eval_results"}  # header fields of the full encoder only
_SHORTER: Final = "The same transformer, with fewer dimensions; its vectors have length 1."


@dataclass(frozen=True)
class Variant:
    """A measured form of an encoder.

    Attributes:
        name: Name of the form.
        path: Path in the exported folder.
        megabytes: Size of its weights in 10⁶ bytes.
        width: Dimensions of its vectors.
        passes: Sentences per second of each timed pass, from text to vector, tokenizer included.
        cosines: Cosines of the scored pairs, (N,).
    """

    name: str
    path: str
    megabytes: float
    width: int
    passes: tuple[float, ...]
    cosines: NDArray[np.float64]

    @property
    def sentences_per_s(self) -> float:
        """Rate of the fastest pass, which is least affected by other load on the machine."""
        return max(self.passes)


def variant_rows(variants: Sequence[Variant], gold: NDArray[np.float64]) -> list[dict[str, str]]:
    """Return a row per form: score with interval, and the difference from the first form on the same draws of pairs."""
    first = variants[0]
    return [
        {
            "form": form.name,
            "path": form.path,
            "MB": f"{form.megabytes:.1f}",
            "width": str(form.width),
            "sentences/s": _spread(form),
            "speedup": f"{form.sentences_per_s / first.sentences_per_s:.1f}",
            "STS-B test": _score(form.cosines, gold),
            "difference": "" if form is first else _difference(first.cosines, form.cosines, gold),
        }
        for form in variants
    ]


def _spread(form: Variant) -> str:
    """Format the rate of the fastest pass, with the range from the slowest to the fastest if there are several."""
    spread = f" [{min(form.passes):,.0f} to {form.sentences_per_s:,.0f}]" if len(form.passes) > 1 else ""
    return f"{form.sentences_per_s:,.0f}{spread}"


def _score(cosines: NDArray[np.float64], gold: NDArray[np.float64]) -> str:
    low, high = percentile_interval(spearman_resamples(gold, cosines))
    return f"{100 * spearman(cosines, gold):.2f} [{100 * low:.1f}, {100 * high:.1f}]"


def _difference(first: NDArray[np.float64], second: NDArray[np.float64], gold: NDArray[np.float64]) -> str:
    found = difference_of(*(draws_of(gold, cosines[None]) for cosines in (first, second)))
    return signed(found.value, found.ci_low, found.ci_high)


def form_card(full: str, row: Mapping[str, str]) -> str:
    """Return the card of a form in a folder.

    Args:
        full: Card of the full encoder; its header is reused, without the scores.
        row: The form's row from `variant_rows`.
    """
    from huggingface_hub import CardData, ModelCard  # slow import, needed only here

    known: dict[str, Any] = ModelCard(full, ignore_metadata_errors=True).data.__dict__
    static = row["path"] == "static"
    header = {name: value for name, value in known.items() if name not in _FULL_ONLY}
    header["tags"] = [*(header.get("tags") or []), *(["static-embeddings"] if static else [])]
    difference = f", {row['difference']} compared with the full encoder" if row["difference"] else ""
    return f"""---
{CardData(**header).to_yaml()}
---

# {row["form"]} of the encoder in the parent folder

{_STATIC if static else _SHORTER} {row["width"]} dimensions, {row["MB"]} MB of weights.

Spearman × 100 on STS-B test with 95 % interval: {row["STS-B test"]}{difference}.

```python
from sentence_transformers import SentenceTransformer

SentenceTransformer("path/to/this/folder")
```

Training data, figures, limits and licences of the full encoder: `README.md` of the parent folder. The same terms apply
here.
"""
