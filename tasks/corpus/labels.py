"""Labels that a person gives, read once a stage, by one rule wherever they judge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from models.corpus.labels import CHOOSE, REPORT, TEACH, enough, parts_of, sentences_of
from models.errors import EmptyCorpusError
from storage.sources.labels import LabelSource, read_labels

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    from models.corpus.labels import Use
    from models.evaluation.labels import Labelled
    from storage.artifacts.refs import PassagesRef
    from storage.artifacts.store import Store

TRAIN: Final = "train"  # the part that is learnt
RARE, BETWEEN = "rare_classes", "idle_labels"
"""Figures of a corpus: rows of each class that is left out, and how many other labelled rows do nothing."""


def labelled_rows(store: Store, passages: PassagesRef, labels: LabelSource, *, use: Use, seed: int = 0) -> pl.DataFrame:
    """`text_1`, `text_2` of pairs, `label`, and `part`: what becomes of a row, as `models.corpus.labels` says.

    Rows of rare classes are left out, and those that do nothing.

    Args:
        store: has the passages.
        passages: the text, with its held-out parts.
        labels: the labels.
        use: what the labels are for.
        seed: decides what is drawn.

    Raises:
        EvaluationError: too few rows are left to judge anything.
    """
    parts = store.scan(passages).select("sentence_id", "part").collect()
    held, learnt = (parts.filter((pl.col("part") == TRAIN) == own)["sentence_id"] for own in (False, True))
    rows = read_labels(labels)
    divided = rows.with_columns(part=parts_of(rows, sides_of(labels), held, learnt, use=use, seed=seed))
    return enough(divided, labels.kind, use)


def apart(own: pl.DataFrame, rows: pl.DataFrame, labels: LabelSource) -> pl.DataFrame:
    """Sentences without those that rows which judge speak of.

    Args:
        own: `sentence_id` of what would be learnt.
        rows: as `labelled_rows` gives them.
        labels: where they are from.

    Raises:
        EmptyCorpusError: nothing is left to learn.
    """
    judging = rows.filter(pl.col("part") != TEACH)
    spoken = pl.concat([sentences_of(judging[side]) for side in sides_of(labels)])
    left = own.filter(~pl.col("sentence_id").is_in(spoken.implode()))
    if left.is_empty():
        raise EmptyCorpusError(
            f"all {own.height:,} sentences that could be learnt are of labelled texts that judge, expected others too; "
            "give text beside the labels"
        )
    return left


def idle(rows: pl.DataFrame, labels: LabelSource) -> dict[str, JsonValue]:
    """What the file has that `labelled_rows` left out, as figures."""
    given = read_labels(labels)
    rare = {}
    if labels.kind == "classes":
        left_out = given.filter(~pl.col("label").is_in(rows["label"].unique().implode()))
        rare = dict(left_out["label"].value_counts().sort("label").iter_rows())
    return {RARE: rare, BETWEEN: given.height - rows.height - sum(rare.values())}


def rows_by_part(rows: pl.DataFrame) -> dict[str, JsonValue]:
    """How many rows each part has, as figures."""
    return {f"labels {part}": count for part, count in sorted(rows["part"].value_counts().iter_rows())}


def summary_of(figures: Mapping[str, JsonValue], labels: LabelSource | None) -> list[str]:
    """For a page: what was left out of the labels, by the figures of `idle`, in sentences."""
    said = []
    rare = figures.get(RARE)
    if isinstance(rare, dict) and rare:
        named = ", ".join(f"{name} ({rows} rows)" for name, rows in rare.items())
        said.append(f"Left out of your labels, for too few of their rows can be used: {named}.")
    if between := figures.get(BETWEEN):
        assert labels is not None  # else nothing is counted
        what = "pairs that share texts with both parts, or" if labels.kind == "pairs" else "rows"
        said.append(f"Left out of your labels: {between} {what} of which a sentence is learnt.")
    return said


def labelled_halves(
    store: Store, passages: PassagesRef, labels: LabelSource | None, use: Use, seed: int
) -> dict[str, Labelled]:
    """The half that chooses and the half that is reported, of rows that nothing learns; none without labels.

    Raises:
        EvaluationError: a half has too few rows.
    """
    if labels is None:
        return {}
    from models.evaluation.labels import labelled_of  # sklearn

    rows = labelled_rows(store, passages, labels, use=use, seed=seed)
    names = tuple(sorted(rows["label"].unique())) if labels.kind == "classes" else ()
    return {
        part: labelled_of(rows.filter(part=part), labels.kind, names, quick=part == CHOOSE) for part in (CHOOSE, REPORT)
    }


def sides_of(labels: LabelSource) -> list[str]:
    """The columns of labelled rows that hold text."""
    return ["text_1", "text_2"][: len(labels.texts)]
