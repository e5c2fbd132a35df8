"""Semantic textual similarity: pairs of sentences with a graded score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from storage.errors import SourceError
from storage.readers.columns import Columns, require

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from storage.readers.read_report import ReadReport

STS: Final = pl.Schema(
    {"subset": pl.String, "sentence1": pl.String, "sentence2": pl.String, "score": pl.Float64},
)


@dataclass(frozen=True)
class ScoredShape:
    """The columns of a scored set: its two sentences, its score and, where there is one, its subset."""

    texts: tuple[str, str]
    score: str = "score"

    def columns(self, found: Sequence[str]) -> Columns:
        """What to read of a table with the columns `found`."""
        return Columns(self.texts, (self.score, "subset") if "subset" in found else (self.score,))


_SHAPES: Final = (
    ScoredShape(("sentence1", "sentence2")),
    ScoredShape(("sentence_A", "sentence_B"), "relatedness_score"),  # SICK as distributed
)


def scored_shape(origin: str, found: Sequence[str], texts: tuple[str, ...] = ()) -> ScoredShape:
    """Which columns of a table are the two sentences and their score.

    Args:
        origin: the file or set, for messages.
        found: the table's columns.
        texts: the set's declared text columns; by the known shapes if empty.

    Raises:
        SourceError: they are not there.
    """
    shapes = (ScoredShape((texts[0], texts[1])),) if len(texts) == 2 else _SHAPES
    for shape in shapes:
        if {*shape.texts, shape.score} <= set(found):
            return shape
    require(origin, found, (*shapes[0].texts, shapes[0].score))
    raise AssertionError(origin)  # require has refused the first shape


def read_sts(
    frames: Iterable[pl.DataFrame], low: float, high: float, report: ReadReport, shape: ScoredShape = _SHAPES[0]
) -> pl.DataFrame:
    """The scored pairs of a set, in its order: `subset` ("" if it has none), `sentence1`, `sentence2`, `score`.

    Pairs without a gold score are dropped and counted as unlabelled, as the tasks' own scorers do.

    Args:
        frames: with the columns of `shape` and perhaps `subset`.
        low: smallest score that the set declares.
        high: largest.
        report: counts what is dropped.
        shape: what the columns are called.

    Raises:
        SourceError: a score is no number or outside its range, naming the row.
    """
    names = dict(zip((*shape.texts, shape.score), ("sentence1", "sentence2", "score"), strict=True))
    table = pl.concat(frames, how="diagonal_relaxed").rename(names)
    spelled = table["score"].cast(pl.String).str.strip_chars().fill_null("")
    score = spelled.cast(pl.Float64, strict=False)
    outside = (spelled != "") & ~score.is_between(low, high).fill_null(value=False)
    if outside.any():
        row = int(outside.arg_true()[0])
        raise SourceError(
            f"{report.name}: row {row + 1} has the score {spelled[row]!r}, expected a number from {low:g} to {high:g}; "
            "correct it or declare the set's range"
        )
    report.unlabelled += int((spelled == "").sum())
    subset = pl.col("subset").fill_null("") if "subset" in table.columns else pl.lit("")
    scored = table.with_columns(subset.alias("subset"), score.alias("score")).filter(spelled != "")
    return scored.select(STS.names()).cast(STS)
