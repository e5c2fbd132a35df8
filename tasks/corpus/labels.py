"""Read the user's labels and divide them into training and evaluation parts, by one rule for all stages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from bsl.models.corpus.labels import (
    DOCUMENT,
    JUDGE,
    NEEDS,
    TEACH,
    held_out_sentences,
    parts_of,
    sentences_of,
    usable_rows,
)
from bsl.models.corpus.normalize import copy_ids
from bsl.models.errors import EmptyCorpusError, EvaluationError
from bsl.storage.filesystem.spelling import nearest_name
from bsl.storage.sources.labels import LabelSource, read_labels
from bsl.tasks.figures import LabelCounts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from bsl.models.corpus.labels import Use
    from bsl.storage.artifacts.refs import PassagesRef
    from bsl.storage.artifacts.store import Store

FEW_GROUPS: Final = 20
"""Number of groups below which a cluster bootstrap's intervals are too narrow."""
TRAIN: Final = "train"  # name of the training part
_WORDS: Final = {JUDGE: "test", TEACH: "training"}
_SHOWN: Final = 5  # rare classes in a message
_ALIKE: Final = 0.8  # of `difflib`: one letter of five may differ


def labelled_rows(store: Store, passages: PassagesRef, labels: LabelSource, *, use: Use, seed: int = 0) -> pl.DataFrame:
    """Return the used rows: `text_1`, `text_2` (for pairs), `label`, and `part` as in `bsl.models.corpus.labels`.

    Rows of rare classes and unused rows are excluded. The rows are sorted, so that the order of the file changes
    neither pairs nor folds.

    Raises:
        EvaluationError: too few rows remain for an evaluation.
    """
    parts = store.scan(passages).select("text", "unit", "part").collect()
    held_out = held_out_sentences(parts)
    training = parts.filter(part=TRAIN).select(copy_ids(pl.col("text"))).to_series()
    rows, sides = _sorted(labels), sides_of(labels)

    def divided(use: Use) -> pl.DataFrame:
        parts = parts_of(rows, sides, held_out, training, use=use, seed=seed)
        return usable_rows(rows.with_columns(part=parts), labels.kind, use)

    try:
        return divided(use)
    except EvaluationError as error:
        if use == "adapt" and _succeeds(lambda: divided("judge")):
            raise EvaluationError(f"{error} Or use all rows as test labels: --labels-only-judge.") from None
        raise


def _succeeds(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except EvaluationError:
        return False
    return True


def evaluation_rows(labels: LabelSource) -> pl.DataFrame:
    """Return all rows of a file as rows for evaluation, sorted: `text_1`, `text_2` (for pairs), `label`.

    Raises:
        EvaluationError: too few rows for an evaluation.
    """
    rows = _sorted(labels).with_columns(part=pl.lit(JUDGE))
    return usable_rows(rows, labels.kind, "evaluate").drop("part")


def evaluation_counts(labels: LabelSource) -> str:
    """Return `counts_line` of a file whose rows are all for evaluation.

    Raises:
        EvaluationError: too few rows for an evaluation.
    """
    rows = evaluation_rows(labels).with_columns(part=pl.lit(JUDGE))
    return counts_line(counts_of(rows, labels), labels, "evaluate")


def without_test_labels(sentences: pl.DataFrame, rows: pl.DataFrame, labels: LabelSource) -> pl.DataFrame:
    """Return the rows of `sentences` (with `text`) that have no copy in labelled rows for evaluation.

    Raises:
        EmptyCorpusError: no sentence remains for training.
    """
    test = rows.filter(pl.col("part") != TEACH)
    excluded = pl.concat([sentences_of(test[side]) for side in sides_of(labels)])
    remaining = sentences.filter(~copy_ids(pl.col("text")).is_in(excluded.implode()))
    if remaining.is_empty():
        raise EmptyCorpusError(
            f"all {sentences.height:,} training sentences occur in test labels, so none remains for training. Give "
            "text in addition to the labels."
        )
    return remaining


def counts_of(rows: pl.DataFrame, labels: LabelSource) -> LabelCounts:
    """Return the number of all rows of the file, of `rows` by part, and of those that `labelled_rows` excluded."""
    given = read_labels(labels)
    rare: dict[str, int] = {}
    if labels.kind == "classes":
        excluded = given.filter(~pl.col("label").is_in(rows["label"].unique().implode()))
        rare = dict(excluded["label"].value_counts().sort("label").iter_rows())
    counts = {
        "label_rows": given.height + labels.left_out,
        "rare_classes": rare,
        "similar_classes": {name: near for name in rare if (near := _near(name, rows["label"].unique(), rare))},
        "idle_labels": given.height - rows.height - sum(rare.values()),
    }
    return LabelCounts.model_validate({**counts, **_rows_by_part(rows)})


def _near(rare: str, used: pl.Series, excluded: Mapping[str, int]) -> str:
    """Return the class of which a rare one may be a misspelling; a used class comes first; empty if there is none."""
    lower: dict[str, str] = {
        name.lower(): name for name in (*(name for name in excluded if name != rare), *used.sort())
    }
    return lower.get(nearest_name(rare.lower(), lower, _ALIKE), "")


def _rows_by_part(rows: pl.DataFrame) -> dict[str, int]:
    """Return the number of rows of each part, and of its documents if the labels have some, by name in a manifest."""
    counts = {f"labels {part}": count for part, count in rows["part"].value_counts().iter_rows()}
    if DOCUMENT in rows.columns:
        by_part = rows.group_by("part").agg(pl.col(DOCUMENT).n_unique())
        counts |= {f"label groups {part}": count for part, count in by_part.iter_rows()}
    return counts


def split_of(counts: LabelCounts, labels: LabelSource) -> str:
    """Return a sentence on how labels were split and for which rows the run's figures hold."""
    if labels.document is None:
        return (
            "Labels are split by text: rows of one writer, customer or thread can be in both parts, so the figures "
            "hold for new rows of the same ones. For new ones, name their column with --document."
        )
    test, training = counts.test_groups, counts.training_groups
    sizes = f"{test} in the test labels" + (f", {training} in the training labels" if training else "")
    few = f" {test} are few: the intervals may be too narrow." if test < FEW_GROUPS else ""
    return (
        f"Labels are split by `{labels.document}`: no value of it is in both parts ({sizes}), and the bootstrap draws "
        f"its values. So the gain holds for values of `{labels.document}` that training has not seen.{few}"
    )


def counts_line(counts: LabelCounts, labels: LabelSource, use: Use) -> str:
    """Return what became of all rows of a file of labels, in one line: `1,015 rows → … → 468 train, 497 test`."""
    parts = {"train": counts.training, "test": counts.test}
    unused = "that share texts with both parts or" if labels.kind == "pairs" else "that"
    steps = [
        f"{counts.label_rows + labels.unreadable:,} rows",
        *([f"{labels.unreadable:,} unreadable"] if labels.unreadable else []),
        *([f"{labels.left_out:,} without text or label"] if labels.left_out else []),
        *_rare(counts, use),
        *([f"{counts.idle_labels:,} {unused} contain a training sentence"] if counts.idle_labels else []),
        ", ".join(f"{count:,} {name}" for name, count in parts.items() if count),
    ]
    return " → ".join(steps)


def _rare(counts: LabelCounts, use: Use) -> Iterator[str]:
    rare, near = counts.rare_classes, counts.similar_classes
    if not rare:
        return
    needed = " or ".join(f"{fewest} {_WORDS[part]}" for part, fewest in NEEDS[use].items())
    named = [
        f"`{name}` {count}" + (f": same as `{near[name]}`?" if name in near else "")
        for name, count in sorted(rare.items(), key=lambda item: item[0] not in near)
    ]
    listed = ", ".join([*named[:_SHOWN], *([f"{len(named) - _SHOWN} more classes"] if len(named) > _SHOWN else [])])
    yield f"{sum(rare.values()):,} in classes of fewer than {needed} rows ({listed})"


def _sorted(labels: LabelSource) -> pl.DataFrame:
    return read_labels(labels).sort(*sides_of(labels), "label", *([DOCUMENT] if labels.document else []))


def sides_of(labels: LabelSource) -> list[str]:
    """Return the text columns of labelled rows."""
    return ["text_1", "text_2"][: len(labels.texts)]
