"""USEB scores (Wang, Reimers and Gurevych, 2021, section 4): each set by the metrics of its own script.

Average precision differs between sets. AskUbuntu: over the ranked answers. CQADupStack: over the first hundred, with
equal scores as one threshold. TwitterPara: the same over all decided pairs. SciDocs: over all answers (trec_eval).
A set with several parts has the mean of its parts. Bootstrap draws are of queries, or pairs, within each part.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from models.evaluation.correlation import spearman
from models.evaluation.metrics import (
    average_precision,
    found_precision,
    gain,
    precision_at,
    reciprocal_rank,
    tied_precision,
    trec_precision,
)
from models.evaluation.signature import WHOLE, ScoreRow
from models.evaluation.significance.bootstrap import (
    mean_resamples,
    percentile_interval,
    precision_resamples,
    spearman_resamples,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from models.evaluation.config import BootstrapConfig
    from models.evaluation.metrics import Ranking

PRECISION: Final = "average precision"
"""The metric that USEB averages over sets."""
PLACES: Final = 100
"""Length of a ranking over a whole pool."""
UNDECIDED: Final = 3
"""Number of votes, of five or six, at which a pair is neither positive nor negative; only Spearman includes it."""

MEASURES: Final[Mapping[str, Mapping[str, Callable[[Ranking], float]]]] = {
    "askubuntu": {
        PRECISION: found_precision,
        "p@1": partial(precision_at, places=1),
        "p@5": partial(precision_at, places=5),
        "mrr": reciprocal_rank,
    },
    "cqadupstack": {PRECISION: tied_precision, "ndcg@10": partial(gain, places=10)},
    "scidocs": {PRECISION: trec_precision, "ndcg": gain},
}
"""Set → metric → function of a query's ranking; the mean over queries is reported."""


@dataclass(frozen=True)
class Part:
    """The score of one part of a set.

    Attributes:
        subset: Name of the part.
        value: The score.
        n: Number of queries, or pairs.
        draws: Bootstrap distribution of the score; two systems have the same draws.
    """

    subset: str
    value: float
    n: int
    draws: NDArray[np.float64]


def ranking_parts(
    dataset: str, rankings: Mapping[str, Sequence[Ranking]], config: BootstrapConfig
) -> dict[str, list[Part]]:
    """Return metric → score of each part of a set of rankings.

    Args:
        dataset: A key of `MEASURES`.
        rankings: Part → ranking of each query.
        config: Configuration of the bootstrap.
    """
    found: dict[str, list[Part]] = {metric: [] for metric in MEASURES[dataset]}
    for (subset, ranked), seed in zip(rankings.items(), _seeds(config, len(rankings)), strict=True):
        for metric, measure in MEASURES[dataset].items():
            values = np.array([measure(ranking) for ranking in ranked])
            draws = mean_resamples(values, resamples=config.resamples, seed=seed)
            found[metric].append(Part(subset, float(values.mean()), len(values), draws))
    return found


def paraphrase_parts(
    pairs: Mapping[str, tuple[NDArray[np.float64], NDArray[np.int64]]], config: BootstrapConfig
) -> dict[str, list[Part]]:
    """Return metric → score of each part of a set of paraphrases: precision of decided pairs, Spearman of all pairs.

    Args:
        pairs: Part → cosine and votes of each pair.
        config: Configuration of the bootstrap.

    Raises:
        EvaluationError: As `models.evaluation.correlation.spearman`.
    """
    found: dict[str, list[Part]] = {PRECISION: [], "spearman": []}
    for (subset, (cosines, votes)), seed in zip(pairs.items(), _seeds(config, len(pairs)), strict=True):
        decided = votes != UNDECIDED
        scores, right = cosines[decided].astype(np.float32), votes[decided] > UNDECIDED
        draws = precision_resamples(scores, right, resamples=config.resamples, seed=seed)
        found[PRECISION].append(Part(subset, average_precision(scores, right), len(scores), draws))
        draws = spearman_resamples(votes, cosines, resamples=config.resamples, seed=seed)
        found["spearman"].append(Part(subset, spearman(cosines, votes), len(votes), draws))
    return found


def useb_rows(dataset: str, split: str, parts: Mapping[str, Sequence[Part]]) -> list[ScoreRow]:
    """Return a row for each metric of the whole set, and of each part if there are several."""
    return [
        ScoreRow(dataset, part.subset, split, metric, "useb", part.value, part.n, *percentile_interval(part.draws))
        for metric, own in parts.items()
        for part in ([whole(own), *own] if len(own) > 1 else [whole(own)])
    ]


def whole(parts: Sequence[Part]) -> Part:
    """Return the unweighted mean over parts."""
    value = float(np.mean([part.value for part in parts]))
    return Part(WHOLE, value, sum(part.n for part in parts), np.mean([part.draws for part in parts], axis=0))


def _seeds(config: BootstrapConfig, parts: int) -> list[np.random.SeedSequence]:
    return np.random.SeedSequence(config.seed).spawn(parts)
