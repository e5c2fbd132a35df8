"""Choose the columns to read: named ones, or known shapes of NLI and STS sets; check labels and scores.

Pairs without a gold label ("-" in the original files, −1 on the Hub; 785 in SNLI's training split) are dropped from
labelled pairs and counted. Their sentences remain in the corpus, which is read without labels.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from storage.errors import SourceError
from storage.readers.read_report import NAME_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from storage.readers.read_report import ReadReport

LABELS: Final = ("entailment", "neutral", "contradiction")  # their positions are the Hub's label numbers
_UNLABELLED: Final = ("-", "-1", "")
_CODES: Final[dict[str, int]] = {
    **{name: code for code, name in enumerate(LABELS)},
    **{str(code): code for code in range(len(LABELS))},
}
STS: Final = pl.Schema({"subset": pl.String, "sentence1": pl.String, "sentence2": pl.String, "score": pl.Float64})


@dataclass(frozen=True)
class Columns:
    """The columns to read, or a known set of column names.

    Attributes:
        texts: string columns; a record that lacks one is rejected.
        others: columns read as strings, null where absent: an NLI label, or the score of a scored pair.
    """

    texts: tuple[str, ...]
    others: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All column names, texts first."""
        return (*self.texts, *self.others)

    @property
    def label(self) -> str | None:
        """The column of labels or scores, if any."""
        return self.others[0] if self.others else None


def require(path: str, found: Sequence[str], expected: Sequence[str], remedy: str = NAME_COLUMNS) -> None:
    """Check that columns exist.

    Args:
        path: the source.
        found: its columns.
        expected: required columns.
        remedy: the option by which the caller names other columns.

    Raises:
        SourceError: lists the missing columns, those found and the nearest name to each.
    """
    missing = [name for name in expected if name not in found]
    if missing:
        raise SourceError(
            f"{path}: column {', '.join(map(repr, missing))} is missing; found {_listed(found)}, expected "
            f"{_listed(expected)}{_hint(missing, found)}; name the right columns {remedy}"
        )


def _hint(missing: Sequence[str], found: Sequence[str]) -> str:
    nearest = {name: difflib.get_close_matches(name, found, n=1, cutoff=0.5) for name in missing}
    hints = [f"{match[0]!r} for {name!r}" for name, match in nearest.items() if match]
    return f" (did you mean {', '.join(hints)}?)" if hints else ""


def _listed(names: Sequence[str], shown: int = 20) -> str:
    more = f", … {len(names)} in all" if len(names) > shown else ""
    return ", ".join(map(repr, names[:shown])) + more if names else "none"


SHAPES: Final = (
    Columns(("sentence1", "sentence2"), ("gold_label",)),  # SNLI and MultiNLI as distributed
    Columns(("premise", "hypothesis"), ("label",)),  # the Hub's copies, all-nli/pair-class
    Columns(("premise", "entailment", "contradiction")),  # triplets of the mirror; their `neutral` is not always known
    Columns(("anchor", "positive", "negative")),  # all-nli/triplet
    Columns(("anchor", "positive")),  # all-nli/pair
    Columns(("sentence1", "sentence2")),  # STS sets
    Columns(("sentence_A", "sentence_B")),  # SICK as distributed
    Columns(("text",)),
    Columns(("sentence",)),
)
_SCORED: Final = (
    Columns(("sentence1", "sentence2"), ("score",)),
    Columns(("sentence_A", "sentence_B"), ("relatedness_score",)),  # SICK as distributed
)


def known_shape(found: Sequence[str]) -> Columns | None:
    """Return the first known shape whose columns all exist, in the same case or else in any case.

    The result has the column names as found.
    """
    for spelt in (str, str.lower):
        held = {spelt(name): name for name in reversed(found)}
        for shape in SHAPES:
            if {spelt(name) for name in shape.names} <= held.keys():
                texts, others = (tuple(held[spelt(name)] for name in names) for names in (shape.texts, shape.others))
                return Columns(texts, others)
    return None


def no_shape(origin: str, found: Sequence[str]) -> SourceError:
    """Return the error for a source whose text columns are neither named nor known."""
    known = "; ".join(", ".join(shape.names) for shape in SHAPES)
    return SourceError(
        f"{origin} has the columns {', '.join(map(repr, found))}, none of the known sets ({known}), and not one alone "
        f"that holds text; name the columns that hold text {NAME_COLUMNS}"
    )


def scored_shape(origin: str, found: Sequence[str], texts: tuple[str, ...] = ()) -> Columns:
    """Return the columns of a table that are the two sentences and their score.

    Args:
        origin: the file or set, for messages.
        found: the table's columns.
        texts: the set's declared text columns; if empty, the known shapes are tried.

    Raises:
        SourceError: the columns are missing.
    """
    shapes = (Columns(texts, ("score",)),) if len(texts) == 2 else _SCORED
    shape = next((shape for shape in shapes if {*shape.names} <= set(found)), shapes[0])
    require(origin, found, shape.names)
    return shape


def read_nli(frames: Iterable[pl.DataFrame], shape: Columns, report: ReadReport) -> Iterator[pl.DataFrame]:
    """Yield labelled pairs as `premise`, `hypothesis`, `label` (Int8), under any column names of the source.

    Raises:
        SourceError: the shape has no labelled pairs, or a label is not entailment, neutral or contradiction.
    """
    if shape.label is None or len(shape.texts) != 2:
        raise SourceError(f"{report.name} contains no labelled pairs, only the columns {', '.join(shape.names)}")
    for frame in frames:
        spelled = frame[shape.label].cast(pl.String).str.strip_chars().fill_null("")
        unlabelled = spelled.is_in(_UNLABELLED)
        codes = spelled.replace_strict(_CODES, default=None, return_dtype=pl.Int8)
        unknown = spelled.filter(codes.is_null() & ~unlabelled)
        if len(unknown):
            raise SourceError(
                f"{report.name}: {len(unknown):,} rows have a label such as {unknown[0]!r} in column {shape.label!r}; "
                f"expected {', '.join(LABELS)} or 0, 1, 2, and '-' or -1 for none; name another column or none"
            )
        report.unlabelled += int(unlabelled.sum())
        premise, hypothesis = (pl.col(text) for text in shape.texts)
        yield frame.select(premise=premise, hypothesis=hypothesis, label=codes).filter(~unlabelled)


def read_sts(
    frames: Iterable[pl.DataFrame], low: float, high: float, report: ReadReport, shape: Columns
) -> pl.DataFrame:
    """Return the scored pairs of a set in order: `subset` ("" if it has none), `sentence1`, `sentence2`, `score`.

    Pairs without a gold score are dropped and counted as unlabelled, as in the tasks' own scorers.

    Args:
        frames: frames with the columns of `shape` and optionally `subset`.
        low: smallest score that the set declares.
        high: largest score that it declares.
        report: counts the dropped pairs.
        shape: names of the columns.

    Raises:
        SourceError: a score is not a number or out of range; names the row.
    """
    names = dict(zip(shape.names, ("sentence1", "sentence2", "score"), strict=True))
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
