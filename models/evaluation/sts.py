"""Semantic textual similarity scores under the field's three protocols (REFERENCE: SimCSE, table B.1).

- `all`: one correlation over the pairs of all subsets together (SBERT, SimCSE, BSL)
- `mean`: the unweighted mean of the subsets' correlations (SentEval, InferSent)
- `wmean`: their mean weighted by number of pairs (BERT-flow, whitening)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from bsl.models.errors import EvaluationError
from bsl.models.evaluation.signature import WHOLE, ScoreRow
from bsl.models.evaluation.significance.bootstrap import METRICS, DrawnScore, percentile_interval

if TYPE_CHECKING:
    from bsl.models.evaluation.significance.bootstrap import Seed

COLUMNS = ("subset", "gold", "cosine")


def sts_scores(rows: pl.DataFrame, *, dataset: str, split: str, resamples: int = 1000, seed: int = 0) -> list[ScoreRow]:
    """Compute all scores of one dataset: both metrics, each subset, and the three protocols over the subsets.

    Args:
        rows: One row per pair: `subset` (the same name for all if the set has none), `gold`, `cosine`.
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
    seeds = np.random.SeedSequence(seed).spawn(len(subsets))
    out: list[ScoreRow] = []
    for metric in METRICS:
        overall = _correlation(rows, metric, f"{dataset} {split}", resamples, seed)
        out.append(ScoreRow(dataset, WHOLE, split, metric, "all", *overall.figures))
        if len(subsets) > 1:
            parts = {
                name: _correlation(part, metric, f"{dataset} {split} {name}", resamples, subset_seed)
                for (name, part), subset_seed in zip(subsets.items(), seeds, strict=True)
            }
            out += [ScoreRow(dataset, name, split, metric, "all", *part.figures) for name, part in parts.items()]
            out += _over_subsets(list(parts.values()), dataset, split, metric)
    return out


def _correlation(rows: pl.DataFrame, metric: str, name: str, resamples: int, seed: Seed) -> DrawnScore:
    """Return the correlation of cosines with gold scores; errors begin with the name."""
    cosine, gold = rows["cosine"].cast(pl.Float64).to_numpy(), rows["gold"].cast(pl.Float64).to_numpy()
    try:
        found = METRICS[metric]
        value, draws = found.compute(cosine, gold), found.draws(cosine, gold, resamples=resamples, seed=seed)
    except EvaluationError as error:
        raise EvaluationError(f"{name} (first scores = cosine, second = gold): {error}") from error
    return DrawnScore(value, len(rows), draws)


def _over_subsets(parts: list[DrawnScore], dataset: str, split: str, metric: str) -> list[ScoreRow]:
    n = sum(part.n for part in parts)
    shares = {"mean": np.full(len(parts), 1.0 / len(parts)), "wmean": np.array([part.n / n for part in parts])}
    values, draws = np.array([part.value for part in parts]), np.stack([part.draws for part in parts])
    return [
        ScoreRow(dataset, WHOLE, split, metric, name, float(weights @ values), n, *percentile_interval(weights @ draws))
        for name, weights in shares.items()
    ]
