"""Read the user's labels and divide them into training and evaluation parts, by one rule for all stages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from models.corpus.labels import JUDGE, TEACH, enough, parts_of, sentences_of
from models.errors import EmptyCorpusError
from storage.sources.labels import LabelSource, read_labels

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    from models.corpus.labels import Use
    from storage.artifacts.refs import PassagesRef
    from storage.artifacts.store import Store

TRAIN: Final = "train"  # name of the training part
RARE, UNUSED = "rare_classes", "idle_labels"
"""Figures of a corpus: rows of each class that is too rare to use, and the number of other unused labelled rows."""


def labelled_rows(store: Store, passages: PassagesRef, labels: LabelSource, *, use: Use, seed: int = 0) -> pl.DataFrame:
    """Return the used rows: `text_1`, `text_2` (for pairs), `label`, and `part` as in `models.corpus.labels`.

    Rows of rare classes and unused rows are excluded. The rows are sorted, so that the order of the file changes
    neither pairs nor folds.

    Raises:
        EvaluationError: too few rows remain for an evaluation.
    """
    parts = store.scan(passages).select("sentence_id", "part").collect()
    held_out, training = (
        parts.filter((pl.col("part") == TRAIN) == is_training)["sentence_id"] for is_training in (False, True)
    )
    rows = read_labels(labels).sort(*sides_of(labels), "label")
    divided = rows.with_columns(part=parts_of(rows, sides_of(labels), held_out, training, use=use, seed=seed))
    return enough(divided, labels.kind, use)


def evaluation_rows(labels: LabelSource) -> pl.DataFrame:
    """Return all rows of a file as rows for evaluation, sorted: `text_1`, `text_2` (for pairs), `label`.

    Raises:
        EvaluationError: too few rows for an evaluation.
    """
    rows = read_labels(labels).sort(*sides_of(labels), "label").with_columns(part=pl.lit(JUDGE))
    return enough(rows, labels.kind, "evaluate").drop("part")


def without_test_labels(sentences: pl.DataFrame, rows: pl.DataFrame, labels: LabelSource) -> pl.DataFrame:
    """Return the rows of `sentences` (with `sentence_id`) whose sentences do not occur in labelled rows for evaluation.

    Raises:
        EmptyCorpusError: no sentence remains for training.
    """
    test = rows.filter(pl.col("part") != TEACH)
    excluded = pl.concat([sentences_of(test[side]) for side in sides_of(labels)])
    remaining = sentences.filter(~pl.col("sentence_id").is_in(excluded.implode()))
    if remaining.is_empty():
        raise EmptyCorpusError(
            f"all {sentences.height:,} training sentences occur in test labels, so none remains for training. Give "
            "text in addition to the labels."
        )
    return remaining


def unused_rows(rows: pl.DataFrame, labels: LabelSource) -> dict[str, JsonValue]:
    """Return the figures of rows that `labelled_rows` excluded."""
    given = read_labels(labels)
    rare = {}
    if labels.kind == "classes":
        excluded = given.filter(~pl.col("label").is_in(rows["label"].unique().implode()))
        rare = dict(excluded["label"].value_counts().sort("label").iter_rows())
    return {RARE: rare, UNUSED: given.height - rows.height - sum(rare.values())}


def rows_by_part(rows: pl.DataFrame) -> dict[str, JsonValue]:
    """Return the number of rows of each part, as figures."""
    return {f"labels {part}": count for part, count in sorted(rows["part"].value_counts().iter_rows())}


def summary_of(figures: Mapping[str, JsonValue], labels: LabelSource | None) -> list[str]:
    """Return sentences for a page about the excluded labels, from the figures of `unused_rows`."""
    lines = []
    rare = figures.get(RARE)
    if isinstance(rare, dict) and rare:
        named = ", ".join(f"{name} ({count} rows)" for name, count in rare.items())
        lines.append(f"Excluded from your labels because too few of their rows are usable: {named}.")
    if unused := figures.get(UNUSED):
        assert labels is not None  # without labels the figure does not exist
        rows = "pairs that share texts with both parts, or" if labels.kind == "pairs" else "rows that"
        lines.append(f"Excluded from your labels: {unused} {rows} contain a training sentence.")
    return lines


def sides_of(labels: LabelSource) -> list[str]:
    """Return the text columns of labelled rows."""
    return ["text_1", "text_2"][: len(labels.texts)]
