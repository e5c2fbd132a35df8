"""USEB scores (Wang, Reimers and Gurevych, 2021, section 4): each set with the metrics of its own script.

Average precision differs between sets. AskUbuntu: over the ranked answers. CQADupStack: over the first hundred, with
equal scores as one threshold. TwitterPara: the same over all decided pairs. SciDocs: over all answers (trec_eval).
A set with several parts has the mean of its parts. Bootstrap draws are of queries, or pairs, within each part.
"""

from __future__ import annotations

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
    DrawnScore,
    mean_resamples,
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
        "p@1": partial(precision_at, k=1),
        "p@5": partial(precision_at, k=5),
        "mrr": reciprocal_rank,
    },
    "cqadupstack": {PRECISION: tied_precision, "ndcg@10": partial(gain, k=10)},
    "scidocs": {PRECISION: trec_precision, "ndcg": gain},
}
"""Set → metric → function of a query's ranking; the mean over queries is reported."""


def ranking_parts(
    dataset: str, rankings: Mapping[str, Sequence[Ranking]], config: BootstrapConfig
) -> dict[str, dict[str, DrawnScore]]:
    """Return metric → part → score of a set of rankings.

    Args:
        dataset: A key of `MEASURES`.
        rankings: Part → ranking of each query.
        config: Configuration of the bootstrap.
    """
    found: dict[str, dict[str, DrawnScore]] = {metric: {} for metric in MEASURES[dataset]}
    for (subset, ranked), seed in zip(rankings.items(), _seeds(config, len(rankings)), strict=True):
        for metric, measure in MEASURES[dataset].items():
            values = np.array([measure(ranking) for ranking in ranked])
            draws = mean_resamples(values, resamples=config.resamples, seed=seed)
            found[metric][subset] = DrawnScore(float(values.mean()), len(values), draws)
    return found


def paraphrase_parts(
    pairs: Mapping[str, tuple[NDArray[np.float64], NDArray[np.int64]]], config: BootstrapConfig
) -> dict[str, dict[str, DrawnScore]]:
    """Return metric → part → score of a set of paraphrases: precision of decided pairs, Spearman of all pairs.

    Args:
        pairs: Part → cosine and votes of each pair.
        config: Configuration of the bootstrap.

    Raises:
        EvaluationError: As `models.evaluation.correlation.spearman`.
    """
    found: dict[str, dict[str, DrawnScore]] = {PRECISION: {}, "spearman": {}}
    for (subset, (cosines, votes)), seed in zip(pairs.items(), _seeds(config, len(pairs)), strict=True):
        decided = votes != UNDECIDED
        scores, right = cosines[decided].astype(np.float32), votes[decided] > UNDECIDED
        draws = precision_resamples(scores, right, resamples=config.resamples, seed=seed)
        found[PRECISION][subset] = DrawnScore(average_precision(scores, right), len(scores), draws)
        draws = spearman_resamples(votes, cosines, resamples=config.resamples, seed=seed)
        found["spearman"][subset] = DrawnScore(spearman(cosines, votes), len(votes), draws)
    return found


def useb_rows(dataset: str, split: str, parts: Mapping[str, Mapping[str, DrawnScore]]) -> list[ScoreRow]:
    """Return a row for each metric of the whole set, and of each part if there are several."""
    return [
        ScoreRow(dataset, subset, split, metric, "useb", *score.figures)
        for metric, scores in parts.items()
        for subset, score in [(WHOLE, whole(scores)), *(scores.items() if len(scores) > 1 else ())]
    ]


def whole(parts: Mapping[str, DrawnScore]) -> DrawnScore:
    """Return the unweighted mean over parts."""
    scores = list(parts.values())
    value = float(np.mean([score.value for score in scores]))
    return DrawnScore(value, sum(score.n for score in scores), np.mean([score.draws for score in scores], axis=0))


def _seeds(config: BootstrapConfig, parts: int) -> list[np.random.SeedSequence]:
    return np.random.SeedSequence(config.seed).spawn(parts)
