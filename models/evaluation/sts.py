"""Semantic textual similarity scores under the field's three protocols (REFERENCE: SimCSE, table B.1).

- `all`: one correlation over the pairs of all subsets together (SBERT, SimCSE, BSL)
- `mean`: the unweighted mean of the subsets' correlations (SentEval, InferSent)
- `wmean`: their mean weighted by number of pairs (BERT-flow, whitening)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bsl.models.errors import EvaluationError
from bsl.models.evaluation.correlation import pearson, spearman
from bsl.models.evaluation.signature import WHOLE, ScoreRow
from bsl.models.evaluation.significance.bootstrap import pearson_resamples, percentile_interval, spearman_resamples

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsl.models.evaluation.significance.bootstrap import Seed

    Drawn = tuple[float, NDArray[np.float64]]  # a correlation, and its bootstrap distribution

COLUMNS = ("subset", "gold", "cosine")
_UNIT: Final = "unit"
METRICS: Final = {"spearman": (spearman, spearman_resamples), "pearson": (pearson, pearson_resamples)}
"""Name of a correlation → the function that computes it, and the one that returns its bootstrap distribution."""


def sts_scores(rows: pl.DataFrame, *, dataset: str, split: str, resamples: int = 1000, seed: int = 0) -> list[ScoreRow]:
    """Compute all scores of one dataset: both metrics, each subset, and the three protocols over the subsets.

    Args:
        rows: One row per pair: `subset` (the same name for all if the set has none), `gold`, `cosine`. If subsets are
            translations of the same pairs, also `unit`, the number from 0 of each pair in its subset: these are drawn
            together.
        dataset: Name of the dataset in the result and in errors.
        split: `test`, `dev`, …
        resamples: Bootstrap draws for the 95 % percentile interval. `mean` and `wmean` draw within each subset.
        seed: Seed of the draws; each subset has its own random stream, derived from it.

    Raises:
        EvaluationError: A column is missing, or a subset is too small, constant or not finite; the message names the
            dataset, the subset and the row in it.
    """
    missing = [name for name in COLUMNS if name not in rows.columns]
    if missing:
        raise EvaluationError(
            f"{dataset} {split}: columns {missing} are missing (found {rows.columns}, expected {list(COLUMNS)})"
        )
    if rows.is_empty():
        raise EvaluationError(f"{dataset} {split}: no pairs, expected at least 2. Read the dataset again.")
    subsets = {str(name): part for (name,), part in rows.group_by("subset", maintain_order=True)}
    seeds: list[Seed] = [*np.random.SeedSequence(seed).spawn(len(subsets))]
    if _UNIT in rows.columns:
        seeds = [seed] * len(subsets)  # draws of units are the same for equal seeds
    out: list[ScoreRow] = []
    for metric in METRICS:
        value, draws = _correlation(rows, metric, f"{dataset} {split}", resamples, seed)
        out.append(ScoreRow(dataset, WHOLE, split, metric, "all", value, len(rows), *percentile_interval(draws)))
        if len(subsets) > 1:
            drawn = [
                _correlation(part, metric, f"{dataset} {split} {name}", resamples, subset_seed)
                for (name, part), subset_seed in zip(subsets.items(), seeds, strict=True)
            ]
            sizes = [len(part) for part in subsets.values()]
            out += [
                ScoreRow(dataset, name, split, metric, "all", value, n, *percentile_interval(draws))
                for name, n, (value, draws) in zip(subsets, sizes, drawn, strict=True)
            ]
            out += _over_subsets(drawn, sizes, dataset, split, metric)
    return out


def _correlation(rows: pl.DataFrame, metric: str, name: str, resamples: int, seed: Seed) -> Drawn:
    """Return the correlation of cosines with gold scores; errors begin with the name."""
    cosine, gold = rows["cosine"].cast(pl.Float64).to_numpy(), rows["gold"].cast(pl.Float64).to_numpy()
    unit_N = rows[_UNIT].cast(pl.Int64).to_numpy() if _UNIT in rows.columns else None
    try:
        compute, resample = METRICS[metric]
        return compute(cosine, gold), resample(cosine, gold, resamples=resamples, seed=seed, unit_N=unit_N)
    except EvaluationError as error:
        raise EvaluationError(f"{name} (first scores = cosine, second = gold): {error}") from error


def _over_subsets(drawn: list[Drawn], sizes: list[int], dataset: str, split: str, metric: str) -> list[ScoreRow]:
    n = sum(sizes)
    shares = {"mean": np.full(len(sizes), 1.0 / len(sizes)), "wmean": np.array([size / n for size in sizes])}
    values, draws = np.array([value for value, _ in drawn]), np.stack([of_subset for _, of_subset in drawn])
    return [
        ScoreRow(dataset, WHOLE, split, metric, name, float(weights @ values), n, *percentile_interval(weights @ draws))
        for name, weights in shares.items()
    ]
