"""Read the user's labelled text: sentence pairs with a score, or sentences with a class, guessed from the columns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import polars as pl

from storage.errors import SourceError
from storage.filesystem.digests import source_sha256
from storage.filesystem.urls import at_home
from storage.readers.columns import Columns, known_shape, named
from storage.readers.formats import Format, columns_of, format_of, read_table
from storage.readers.read_report import ReadReport
from storage.readers.text_columns import SAMPLE, is_prose, require_header
from storage.record import NotInKey, Record
from storage.sources.own_text import TITLES

if TYPE_CHECKING:
    from collections.abc import Sequence

SET_PREFIX: Final = "labels:"
"""Before a file in the name of an evaluation set."""
_SCORES: Final = ("score", "similarity", "rating", "gold", "relatedness_score", "label")
_CLASSES: Final = ("label", "class", "category", "intent", "topic", "sentiment", "rating", "stars", "target")
_MOST_CLASSES: Final = 100
_MAX_BAD_SHARE: Final = 0.01  # maximum share of unreadable records
_NOT_A_SIDE: Final = (*TITLES, "name", "summary")  # text columns that are never one side of a pair
_MISSING: Final = (
    "nan", "NaN", "-nan", "-NaN", "null", "NULL", "None", "NA", "N/A", "n/a", "<NA>", "#N/A", "#NA",
)  # fmt: skip
"""Missing values as pandas, Python's json, R, SQL and spreadsheets write them; `none` counts as a class."""
_INFINITE: Final = r"(?i)^[+-]?inf(inity)?$"
"""A missing value in a column of classes; an error in a column of scores."""
_LARGEST_SCORE: Final = 1e6
"""Above every scale of similarity; a larger value is a mistake or an id."""


class LabelSource(Record):
    """A file of labelled text and the columns to read."""

    digest: str
    """sha256 of the file's content."""
    format: Format
    kind: Literal["pairs", "classes"]
    """Pairs of sentences with a score, or sentences with a class."""
    texts: tuple[str, ...]
    """Text columns: two for pairs, one for classes."""
    label: str
    """Column of scores or classes."""
    rule: Literal[3] = 3
    """Version of the rule that distinguishes labels from missing values; part of keys."""
    path: Annotated[str, NotInKey]
    left_out: Annotated[int, NotInKey] = 0
    """Rows without a label or a text."""

    @property
    def summary(self) -> str:
        """The guessed columns in one sentence."""
        texts = " and ".join(f"`{text}`" for text in self.texts)
        what = "scored pairs" if self.kind == "pairs" else "classes"
        columns = f"labels: {what}, text in {texts}, {'score' if self.kind == 'pairs' else 'class'} in `{self.label}`"
        return columns + (f"; {self.left_out:,} rows without text or label are excluded" if self.left_out else "")


def label_source(path: str) -> LabelSource:
    """Find a file of labels and guess its columns.

    Raises:
        SourceError: the file is missing, or its columns are neither scored pairs nor classes.
    """
    form = format_of(path)
    columns = columns_of(path, form)
    readable = columns_of(path, form, readable=True)
    table = _table(path, form, readable) if readable else pl.DataFrame()
    prose = [name for name in table.columns if is_prose(table[name].head(200))]
    # Also consider unique values: 300 questions may share 15 answers.
    prose_once = [name for name in table.columns if is_prose(table[name].unique(maintain_order=True).head(200))]
    shape = known_shape(table.columns)
    known = [*shape.texts] if shape else []  # even if the texts are short
    found = _guess(table, prose) or _guess(table, prose_once) or _guess(table, known)
    if found is not None:
        kind, texts, label = found
        if kind == "pairs":
            _require_scores(path, table[label])
        # Workers have other working directories.
        address = path if "://" in path else str(Path(at_home(path)).absolute())
        source = LabelSource(
            digest=source_sha256(path), format=form, kind=kind, texts=tuple(texts), label=label, path=address
        )
        return source.model_copy(update={"left_out": table.height - _labelled(source, table).height})
    require_header(path, form, table.head(SAMPLE))
    raise SourceError(
        f"{path}: no labels found in the columns {', '.join(map(repr, columns))} (text columns: "
        f"{', '.join(map(repr, prose_once)) or 'none'}{_obstacle(table, prose_once or known)}), expected two text "
        f"columns and a number ({', '.join(_SCORES)}), or one text column and 2 to {_MOST_CLASSES} classes "
        f"({', '.join(_CLASSES)}). Rename the columns or correct their values."
    )


def read_labels(source: LabelSource) -> pl.DataFrame:
    """Return the complete rows in order: `text_1`, `text_2` (null for classes), `label` (a string).

    Raises:
        SourceError: the file cannot be read.
    """
    return _labelled(source, _table(source.path, source.format, (*source.texts, source.label)))


def _guess(table: pl.DataFrame, prose: list[str]) -> tuple[Literal["pairs", "classes"], list[str], str] | None:
    """Return the kind of labels, the text columns and the label column; None if the columns are not labels."""
    texts = _without_titles(prose)
    others = [name for name in table.columns if name not in prose]
    score = next((name for name in named(others, _SCORES) if _non_number(table[name]) is None), None)
    if len(texts) == 2 and len(prose) == 2 and score is not None and table[score].drop_nulls().n_unique() > 1:
        return "pairs", texts, score
    chosen = next(named(others, _CLASSES), None)
    if len(texts) == 1 and chosen is not None and 2 <= _classes(table[chosen]).n_unique() <= _MOST_CLASSES:
        return "classes", texts, chosen
    return None


def _obstacle(table: pl.DataFrame, prose: list[str]) -> str:
    """Return why a column with a label's name cannot be the label; empty if no column has such a name."""
    texts = _without_titles(prose)
    others = [name for name in table.columns if name not in prose]
    chosen = next(named(others, _SCORES if len(texts) == 2 else _CLASSES), None)
    if chosen is None or len(prose) > 2:
        return ""
    if len(texts) == 2 and (value := _non_number(table[chosen])) is not None:
        return f"; {chosen!r} contains {value!r}, which is not a number"
    return f"; {chosen!r} has {_classes(table[chosen]).n_unique():,} different values"


def _without_titles(prose: list[str]) -> list[str]:
    """Return the text columns without titles and names, unless nothing is left."""
    return [name for name in prose if name.lower() not in _NOT_A_SIDE] or prose


def _labelled(source: LabelSource, table: pl.DataFrame) -> pl.DataFrame:
    second = pl.col(source.texts[1]) if len(source.texts) == 2 else pl.lit(None, pl.String)
    rows = table.drop_nulls([*source.texts, source.label])
    if source.kind == "classes":
        rows = rows.filter(~pl.col(source.label).str.contains(_INFINITE))
    return rows.select(text_1=pl.col(source.texts[0]), text_2=second, label=pl.col(source.label))


def _table(path: str, kind: Format, columns: Sequence[str]) -> pl.DataFrame:
    report = ReadReport(path)
    frames = list(read_table(path, kind, Columns((), tuple(columns)), report))
    report.check(_MAX_BAD_SHARE)
    # CSV has no null, so a blank cell counts as missing, like null in other formats.
    table = pl.concat(frames).cast(pl.String).select(pl.all().str.strip_chars().replace("", None))
    labels = [name for name in table.columns if name.lower() in (*_SCORES, *_CLASSES)]
    return table.with_columns(pl.col(labels).replace(list(_MISSING), None))


def _classes(values: pl.Series) -> pl.Series:
    """Return the class labels of a column without missing values."""
    known = values.drop_nulls()
    return known.filter(~known.str.contains(_INFINITE))


def _non_number(values: pl.Series) -> str | None:
    """Return the first value that is not a number; None if all are numbers."""
    known = values.drop_nulls()
    return next(iter(known.filter(known.cast(pl.Float64, strict=False).is_null())), None)


def _require_scores(path: str, values: pl.Series) -> None:
    """Refuse scores that are not finite or outside a plausible scale."""
    wrong = (~(values.cast(pl.Float64).abs() <= _LARGEST_SCORE)).fill_null(value=False).arg_true()
    if len(wrong):
        row = int(wrong[0])
        raise SourceError(
            f"{path}: row {row + 1} has the score {values[row]!r} in column {values.name!r}, expected a finite "
            f"similarity within ±{_LARGEST_SCORE:,.0f}. Correct it, or leave the cell blank."
        )
