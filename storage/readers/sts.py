"""Semantic textual similarity: pairs of sentences with a graded score."""

from collections.abc import Iterable, Sequence
from typing import Final

import polars as pl

from storage.errors import SourceError
from storage.readers.columns import Columns
from storage.readers.report import ReadReport

STS: Final = pl.Schema(
    {"subset": pl.String, "sentence1": pl.String, "sentence2": pl.String, "score": pl.Float64},
)


def sts_columns(found: Sequence[str]) -> Columns:
    """What to read of an STS set; a subset's name where there is one."""
    return Columns(("sentence1", "sentence2"), ("score", "subset") if "subset" in found else ("score",))


def read_sts(frames: Iterable[pl.DataFrame], low: float, high: float, report: ReadReport) -> pl.DataFrame:
    """The scored pairs of a set, in its order: `subset` ("" if it has none), `sentence1`, `sentence2`, `score`.

    Pairs without a gold score are dropped and counted as unlabelled, as the tasks' own scorers do.

    Args:
        frames: with `sentence1`, `sentence2`, `score` and perhaps `subset`.
        low: smallest score that the set declares.
        high: largest.
        report: counts what is dropped.

    Raises:
        SourceError: a score is no number or outside its range, naming the row.
    """
    table = pl.concat(frames, how="diagonal_relaxed")
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
