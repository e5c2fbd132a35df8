"""Several methods with several seeds each, on the same sets: figures, differences, and which can be told apart."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from models.errors import EvaluationError
from models.evaluation.hierarchical import difference_of, figure_of, holm

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from models.evaluation.hierarchical import Draws, Figure

MEAN: Final = "mean of sets"
LEVEL: Final = 0.05
DRAWS: Final = 80  # a comparison: Holm's smallest p, 2 in the number of draws for each, is then half of 0.05
_ITSELF: Final = dict.fromkeys(("difference", "difference_low", "difference_high", "p_value"))


def study_rows(
    labels: Sequence[str],
    sets: Mapping[str, Sequence[Draws]],
    *,
    references: Sequence[str] | None = None,
    seed: int = 0,
) -> Iterator[dict[str, object]]:
    """A row a reference, set and method, and the same for the mean of all sets where there are several.

    Args:
        labels: the methods.
        sets: set → draws of each method, in the order of `labels`.
        references: the labels that all others are compared with; the first of `labels` unless given.
        seed: of the draws of seeds.

    Yields:
        label, dataset, mean, sd, ci_low, ci_high, seeds, reference, and, but for the reference itself, difference,
        difference_low, difference_high, p_value: Holm's, over the methods that are compared with it on the set.

    Raises:
        EvaluationError: a reference is none of the methods; or as `difference_of`.
    """
    wanted = references or labels[:1]
    if unknown := [label for label in wanted if label not in labels]:
        raise EvaluationError(
            f"to be compared with {', '.join(unknown)}, expected some of {', '.join(labels)}; name what is run"
        )
    groups = {name: [[draws] for draws in methods] for name, methods in sets.items()}
    if len(sets) > 1:
        groups[MEAN] = [list(methods) for methods in zip(*sets.values(), strict=True)]
    for reference in wanted:
        for name, methods in groups.items():
            gains = _gains(dict(zip(labels, methods, strict=True)), reference, seed)
            for label, method in zip(labels, methods, strict=True):
                yield {
                    "label": label,
                    "dataset": name,
                    **_figure(figure_of(method, seed=seed)),
                    "reference": reference,
                    **gains.get(label, _ITSELF),
                }


def verdict(row: Mapping[str, object]) -> str | None:
    """Whether a row of `study_rows` is told apart from its reference; None where there is no difference to judge.

    `above` or `below` only where the interval leaves out 0 and the corrected p is small; else `no`.
    """
    low, high, p_value = (row[name] for name in ("difference_low", "difference_high", "p_value"))
    if not (isinstance(low, float) and isinstance(high, float) and isinstance(p_value, float)):
        return None
    if p_value < LEVEL and low > 0:
        return "above"
    return "below" if p_value < LEVEL and high < 0 else "no"


def enough_draws(resamples: int, comparisons: int) -> int:
    """How many draws so many comparisons need: with fewer, no difference could pass Holm's correction.

    Args:
        resamples: as configured; never fewer.
        comparisons: of a table with one reference.
    """
    return max(resamples, DRAWS * comparisons)


def smallest_p(draws: int, comparisons: int) -> float:
    """The smallest p that draws can give one of several comparisons after Holm's correction, at most 1."""
    return min(1.0, 2 * max(comparisons, 1) / (draws + 1))


def _figure(figure: Figure) -> dict[str, object]:
    return asdict(figure) | {"sd": figure.sd if figure.seeds > 1 else None}


def _gains(methods: Mapping[str, Sequence[Draws]], reference: str, seed: int) -> dict[str, dict[str, object]]:
    """Method → its difference from the reference, of all but the reference."""
    gains = {
        label: difference_of(methods[reference], method, seed=seed)
        for label, method in methods.items()
        if label != reference
    }
    p_values = holm([gain.p_value for gain in gains.values()])
    return {
        label: {
            "difference": gain.value,
            "difference_low": gain.ci_low,
            "difference_high": gain.ci_high,
            "p_value": p_value,
        }
        for (label, gain), p_value in zip(gains.items(), p_values, strict=True)
    }
