"""Argument Facet Similarity (SBERT section 4.3, BSL appendix B): protocols, folds and scores.

    unsupervised        cosine of frozen embeddings
    10-fold             cross-validation over the pairs of all topics, as in the papers: folds share sentences
    10-fold-disjoint    10 folds whose training pairs share no sentence with the test pairs
    cross-topic         train on two topics, test on the third

Every pair is tested once. A topic's score is over all its pairs; the papers report the mean over topics.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from bsl.models.errors import EvaluationError
from bsl.models.evaluation.config import FOLDS_OF
from bsl.models.evaluation.signature import WHOLE
from bsl.models.evaluation.sts import sts_scores

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsl.models.evaluation.config import AfsProtocol, Supervision

MEAN: Final = "mean"


def afs_folds(
    pairs: pl.DataFrame, protocol: Supervision, seed: int
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Return the training rows and the test rows of each fold.

    Args:
        pairs: Columns `topic`, `sentence1`, `sentence2`.
        protocol: The kind of folds.
        seed: Seed of the order in which pairs, or groups of pairs connected by shared sentences, go to folds.

    Raises:
        EvaluationError: A fold has no training pairs, or there are fewer pairs than folds.
    """
    tests = {"10-fold": _shuffled, "10-fold-disjoint": _grouped, "cross-topic": _by_topic}[protocol](pairs, seed)
    out = []
    for number, test in enumerate(tests):
        train = np.setdiff1d(np.arange(pairs.height), test)
        if protocol == "10-fold-disjoint":
            train = train[~_shares_a_sentence(pairs, train, test)]
        if len(train) == 0 or len(test) == 0:
            raise EvaluationError(
                f"afs {protocol}: fold {number} has {len(train)} training pairs and {len(test)} test pairs of "
                f"{pairs.height}, expected at least one of each. Give the complete dataset, or use another protocol."
            )
        out.append((train, test))
    return out


def afs_scores(pairs: pl.DataFrame, protocol: AfsProtocol, *, resamples: int = 1000, seed: int = 0) -> pl.DataFrame:
    """Compute Pearson and Spearman of each topic and their means over topics, with 95 % intervals.

    Args:
        pairs: Columns `topic`, `gold`, `cosine`.
        protocol: Protocol of the cosines, written to the column `protocol`.
        resamples: Number of bootstrap draws within each topic.
        seed: Seed of the draws.

    Raises:
        EvaluationError: There are fewer than two topics, or as `sts_scores`.
    """
    if pairs["topic"].n_unique() < 2:
        raise EvaluationError(
            f"afs: pairs of the topics {pairs['topic'].unique().to_list()}, expected at least two topics for a mean "
            "over topics. Give the files of all topics."
        )
    rows = pairs.select("gold", "cosine", subset="topic")
    figures = sts_scores(rows, dataset="afs", split="test", resamples=resamples, seed=seed)
    table = pl.DataFrame([asdict(figure) for figure in figures])
    topics = table.filter(pl.col("subset") != WHOLE)
    mean = table.filter(pl.col("protocol") == "mean").with_columns(subset=pl.lit(MEAN))
    return pl.concat([topics, mean]).with_columns(protocol=pl.lit(protocol))


def _shuffled(pairs: pl.DataFrame, seed: int) -> list[NDArray[np.int64]]:
    return np.array_split(np.random.Generator(np.random.PCG64(seed)).permutation(pairs.height), FOLDS_OF["10-fold"])


def _grouped(pairs: pl.DataFrame, seed: int) -> list[NDArray[np.int64]]:
    """Return folds of about equal size; pairs connected by shared sentences are adjacent in the fold order."""
    one, two, count = _sentence_numbers(pairs)
    links = coo_array((np.ones(len(one)), (one, two)), shape=(count, count))
    groups, group = connected_components(links, directed=False)
    rank = np.random.Generator(np.random.PCG64(seed)).permutation(groups)
    return np.array_split(np.argsort(rank[group[one]], kind="stable"), FOLDS_OF["10-fold-disjoint"])


def _by_topic(pairs: pl.DataFrame, seed: int) -> list[NDArray[np.int64]]:  # noqa: ARG001 - no random draws
    topics = pairs["topic"].to_numpy()
    return [np.flatnonzero(topics == topic) for topic in pairs["topic"].unique(maintain_order=True)]


def _shares_a_sentence(pairs: pl.DataFrame, train: NDArray[np.int64], test: NDArray[np.int64]) -> NDArray[np.bool_]:
    one, two, count = _sentence_numbers(pairs)
    tested = np.zeros(count, dtype=bool)
    tested[one[test]] = tested[two[test]] = True
    return tested[one[train]] | tested[two[train]]


def _sentence_numbers(pairs: pl.DataFrame) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    texts = pl.concat([pairs["sentence1"], pairs["sentence2"].alias("sentence1")])
    number = (texts.rank("dense") - 1).to_numpy().astype(np.int64)
    return number[: pairs.height], number[pairs.height :], int(number.max()) + 1
