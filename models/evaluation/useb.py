"""USEB's figures (Wang, Reimers and Gurevych, 2021, section 4): each set by the measures of its own script.

Which average precision a set has differs: over the candidates that were found (AskUbuntu), over the first hundred with
those of one score together (CQADupStack), over all pairs alike (TwitterPara), over all answers as trec_eval has it
(SciDocs). A set of parts is the plain mean over them. Intervals are drawn over queries, or pairs, within each part.
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
from models.evaluation.significance.paired import Difference, drawn_difference

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from models.evaluation.config import BootstrapConfig
    from models.evaluation.metrics import Ranking

PRECISION: Final = "average precision"
"""The figure of each set that USEB averages."""
PLACES: Final = 100
"""Places of a ranking over a whole pool."""
UNDECIDED: Final = 3
"""Votes of five or six judges at which a pair is neither paraphrase nor not; it counts for the correlation alone."""

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
"""Set of rankings → metric → a query's figure, whose mean over queries is reported."""


@dataclass(frozen=True)
class Part:
    """A figure of one part of a set.

    Attributes:
        subset: The part's name.
        value: The figure.
        n: Queries, or pairs.
        draws: Its bootstrap distribution; of two systems by the same draws.
    """

    subset: str
    value: float
    n: int
    draws: NDArray[np.float64]


def ranking_parts(
    dataset: str, rankings: Mapping[str, Sequence[Ranking]], config: BootstrapConfig
) -> dict[str, list[Part]]:
    """Metric → the figure of each part of a set of rankings.

    Args:
        dataset: A key of `MEASURES`.
        rankings: Part → the ranking of each of its queries.
        config: How intervals are drawn.
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
    """Metric → the figure of each part of a set of paraphrases: precision of decided pairs, Spearman of all.

    Args:
        pairs: Part → cosine and votes of each pair.
        config: How intervals are drawn.

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
    """A row for each metric of the whole set, and for each of its parts if it has several."""
    return [
        ScoreRow(dataset, part.subset, split, metric, "useb", part.value, part.n, *percentile_interval(part.draws))
        for metric, own in parts.items()
        for part in ([whole(own), *own] if len(own) > 1 else [whole(own)])
    ]


def whole(parts: Sequence[Part]) -> Part:
    """The plain mean over parts."""
    value = float(np.mean([part.value for part in parts]))
    return Part(WHOLE, value, sum(part.n for part in parts), np.mean([part.draws for part in parts], axis=0))


def difference(first: Part, second: Part) -> Difference:
    """The second system less the first, by the draws that they share."""
    return drawn_difference(second.value - first.value, second.draws - first.draws)


def _seeds(config: BootstrapConfig, parts: int) -> list[np.random.SeedSequence]:
    return np.random.SeedSequence(config.seed).spawn(parts)
