"""Labels that a person gives, read once a stage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from models.own_labels import judges, unlearnt
from models.text.errors import EmptyCorpusError
from storage.labels import LabelSource, read_labels

if TYPE_CHECKING:
    from models.evaluation.labels import Labelled
    from storage.refs import PassagesRef
    from storage.store import Store

TRAIN: Final = "train"  # the part that is learnt


def without_judging(parts: pl.DataFrame, source: LabelSource, seed: int) -> pl.DataFrame:
    """Sentences with their `part`, less those of the part `train` that stand in labelled rows which judge.

    Raises:
        EmptyCorpusError: nothing is left to learn.
    """
    learnt = parts.filter(part=TRAIN)["sentence_id"]
    apart = unlearnt(read_labels(source), sides_of(source), learnt, seed=seed)
    left = parts.filter((pl.col("part") != TRAIN) | ~pl.col("sentence_id").is_in(apart.implode()))
    if left.filter(part=TRAIN).is_empty():
        raise EmptyCorpusError(
            f"all {learnt.n_unique():,} sentences that could be learnt are of labelled texts that judge, expected "
            "others too; give text beside the labels, or let `bsl field` learn the labels themselves"
        )
    return left


def labelled_halves(source: LabelSource | None, learnt: pl.Series, seed: int) -> dict[str, Labelled]:
    """The half that chooses and the half that reports, of rows that nothing is learnt from; none without labels.

    Args:
        source: the labels.
        learnt: ids of the sentences that are learnt.
        seed: decides which row goes where.

    Raises:
        EvaluationError: a half has too few rows.
    """
    if source is None:
        return {}
    from models.evaluation.labels import halves_of  # sklearn

    rows = read_labels(source)
    return halves_of(rows.filter(judges(rows, sides_of(source), learnt)), source.kind, seed)


def learnt_ids(store: Store, passages: PassagesRef) -> pl.Series:
    """The ids of the sentences that are learnt."""
    return store.scan(passages).filter(part=TRAIN).select("sentence_id").collect()["sentence_id"]


def sides_of(labels: LabelSource) -> list[str]:
    """The columns of labelled rows that hold text."""
    return ["text_1", "text_2"][: len(labels.texts)]
