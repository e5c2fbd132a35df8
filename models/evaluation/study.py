"""Several methods with several seeds each, on the same sets: figures, differences, and which can be told apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from models.evaluation.hierarchical import difference_of, figure_of, holm

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from models.evaluation.hierarchical import Draws

MEAN: Final = "mean of sets"


def study_rows(
    labels: Sequence[str], sets: Mapping[str, Sequence[Draws]], *, seed: int = 0
) -> Iterator[dict[str, object]]:
    """A row a method and set, and one for the mean of all sets where there are several.

    Args:
        labels: the methods; the first is what the others are compared with.
        sets: set → draws of each method, in the order of `labels`.
        seed: of the draws of seeds.

    Yields:
        label, dataset, mean, sd, ci_low, ci_high, seeds, and, but for the first method, difference, difference_low,
        difference_high, p_value: Holm's, over the methods that are compared on the set.
    """
    groups = {name: [[draws] for draws in methods] for name, methods in sets.items()}
    if len(sets) > 1:
        groups[MEAN] = [list(methods) for methods in zip(*sets.values(), strict=True)]
    for name, methods in groups.items():
        gains = [difference_of(methods[0], method, seed=seed) for method in methods[1:]]
        p_values = holm([gain.p_value for gain in gains])
        for place, (label, method) in enumerate(zip(labels, methods, strict=True)):
            figure = figure_of(method, seed=seed)
            row: dict[str, object] = {
                "label": label,
                "dataset": name,
                "mean": figure.mean,
                "sd": figure.sd if figure.seeds > 1 else None,
                "ci_low": figure.ci_low,
                "ci_high": figure.ci_high,
                "seeds": figure.seeds,
            }
            gain = gains[place - 1] if place else None
            yield row | {
                "difference": gain.value if gain else None,
                "difference_low": gain.ci_low if gain else None,
                "difference_high": gain.ci_high if gain else None,
                "p_value": p_values[place - 1] if place else None,
            }
