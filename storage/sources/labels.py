"""Somebody's labels: pairs of sentences with a score, or sentences with a class, by the columns of one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import polars as pl

from storage.artifacts.keys import NotInKey
from storage.errors import SourceError
from storage.filesystem.digests import source_sha256
from storage.readers.columns import Columns, known_shape
from storage.readers.formats import Format, columns_of, format_of, read_table, readable_columns, require_header
from storage.readers.read_report import ReadReport
from storage.readers.text_columns import SAMPLE, is_prose
from storage.record import Record
from storage.sources.own_text import TITLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SCORES: Final = ("score", "similarity", "rating", "gold", "relatedness_score", "label")
_CLASSES: Final = ("label", "class", "category", "intent", "topic", "sentiment", "rating", "stars", "target")
_MOST_CLASSES: Final = 100
_MAX_BAD_SHARE: Final = 0.01  # of the records; with more the file is refused
_BESIDE: Final = (*TITLES, "name", "summary")  # what stands beside a text and is no other side of a pair
_MISSING: Final = (
    "nan", "NaN", "-nan", "-NaN", "null", "NULL", "None", "NA", "N/A", "n/a", "<NA>", "#N/A", "#NA",
)  # fmt: skip
"""What pandas, Python's json, R, SQL and spreadsheets write for no value; `none` is a class like any other."""
_INFINITE: Final = ("inf", "-inf", "+inf", "Inf", "-Inf", "Infinity", "-Infinity")
"""Of classes no value either; as a score refused."""
_LARGEST_SCORE: Final = 1e6
"""Larger than any scale of similarity; what lies beyond is a slip or an id."""


class LabelSource(Record):
    """A file of labelled text, and what is read of it."""

    digest: str
    """sha256 of the file's content."""
    format: Format
    """Format of the file."""
    kind: Literal["pairs", "classes"]
    """Pairs of sentences with a score, or sentences with a class."""
    texts: tuple[str, ...]
    """The columns of text: two of pairs, one of classes."""
    label: str
    """The column of scores or classes."""
    rule: Literal[2] = 2
    """Version of the rule that tells labels from missing values, so that a new one gives new keys."""
    path: Annotated[str, NotInKey]
    """Where the file is."""
    left_out: Annotated[int, NotInKey] = 0
    """Rows without a label or a text."""

    @property
    def told(self) -> str:
        """The guess in a sentence."""
        texts = " and ".join(f"`{text}`" for text in self.texts)
        what = "scored pairs" if self.kind == "pairs" else "classes"
        which = f"labels: {what}, text in {texts}, {'score' if self.kind == 'pairs' else 'class'} in `{self.label}`"
        return which + (f"; {self.left_out:,} rows without are left out" if self.left_out else "")


def label_source(path: str) -> LabelSource:
    """Find a file of labels and guess its columns.

    Raises:
        SourceError: it is not there, or its columns are neither scored pairs nor classes.
    """
    form = format_of(path)
    held = columns_of(path, form)
    table = _table(path, form, readable_columns(path, form))
    prose = [name for name in table.columns if is_prose(table[name].head(200))]
    # Of their different values too: 300 questions may have 15 answers between them.
    repeated = [name for name in table.columns if is_prose(table[name].unique(maintain_order=True).head(200))]
    shape = known_shape(table.columns)
    known = [*shape.texts] if shape else []  # however short they are
    found = _taken(table, prose) or _taken(table, repeated) or _taken(table, known)
    if found is not None:
        kind, texts, label = found
        if kind == "pairs":
            _require_scores(path, table[label])
        place = path if "://" in path else str(Path(path).expanduser().absolute())  # for workers, who stand elsewhere
        source = LabelSource(
            digest=source_sha256(path), format=form, kind=kind, texts=tuple(texts), label=label, path=place
        )
        return source.model_copy(update={"left_out": table.height - _labelled(source, table).height})
    require_header(path, form, table.head(SAMPLE))
    raise SourceError(
        f"{path} has the columns {', '.join(map(repr, held))}, of which {', '.join(map(repr, repeated)) or 'none'} "
        f"hold text{_hindrance(table, repeated or known)}; expected two of text and a number "
        f"({', '.join(_SCORES)}), or one of text and 2 to {_MOST_CLASSES} classes ({', '.join(_CLASSES)}); "
        "rename the columns or correct their values"
    )


def read_labels(source: LabelSource) -> pl.DataFrame:
    """Labelled rows in order: `text_1`, `text_2` (null of classes), `label` (a string); rows without all are left out.

    Raises:
        SourceError: the file cannot be read.
    """
    return _labelled(source, _table(source.path, source.format, (*source.texts, source.label)))


def _taken(table: pl.DataFrame, prose: list[str]) -> tuple[Literal["pairs", "classes"], list[str], str] | None:
    """What the labels are, their columns of text and their own; None where these columns of text are of no labels."""
    texts = _without_titles(prose)
    score = next((name for name in _named(table, prose, _SCORES) if _strange(table[name]) is None), None)
    if len(texts) == 2 and len(prose) == 2 and score is not None and table[score].drop_nulls().n_unique() > 1:
        return "pairs", texts, score
    chosen = next(_named(table, prose, _CLASSES), None)
    if len(texts) == 1 and chosen is not None and 2 <= _classes(table[chosen]).n_unique() <= _MOST_CLASSES:
        return "classes", texts, chosen
    return None


def _hindrance(table: pl.DataFrame, prose: list[str]) -> str:
    """Why columns of the right names are no labels; empty where their names are not right either."""
    texts = _without_titles(prose)
    chosen = next(_named(table, prose, _SCORES if len(texts) == 2 else _CLASSES), None)
    if chosen is None or len(prose) > 2:
        return ""
    if len(texts) == 2 and (strange := _strange(table[chosen])) is not None:
        return f", and {chosen!r} has {strange!r}, which is no number"
    return f", and {chosen!r} has {_classes(table[chosen]).n_unique():,} different values"


def _named(table: pl.DataFrame, prose: list[str], names: Sequence[str]) -> Iterator[str]:
    """Columns of such names, however they are written, that are none of text."""
    lower = {name.lower(): name for name in table.columns if name not in prose}
    return (lower[name] for name in names if name in lower)


def _without_titles(prose: list[str]) -> list[str]:
    """Columns of text, a title aside that stands beside one."""
    return [name for name in prose if name.lower() not in _BESIDE] or prose


def _labelled(source: LabelSource, table: pl.DataFrame) -> pl.DataFrame:
    second = pl.col(source.texts[1]) if len(source.texts) == 2 else pl.lit(None, pl.String)
    rows = table.drop_nulls([*source.texts, source.label])
    if source.kind == "classes":
        rows = rows.filter(~pl.col(source.label).is_in(_INFINITE))
    return rows.select(text_1=pl.col(source.texts[0]), text_2=second, label=pl.col(source.label))


def _table(path: str, kind: Format, columns: Sequence[str]) -> pl.DataFrame:
    report = ReadReport(path)
    frames = list(read_table(path, kind, Columns((), tuple(columns)), report))
    if not frames:
        raise SourceError(f"{path} holds no record; give labelled text, or leave --labels out")
    report.check(_MAX_BAD_SHARE)
    # CSV has no null: what is blank there is what another format leaves out.
    table = pl.concat(frames).cast(pl.String).select(pl.all().str.strip_chars().replace("", None))
    labels = [name for name in table.columns if name.lower() in (*_SCORES, *_CLASSES)]
    return table.with_columns(pl.col(labels).replace(list(_MISSING), None))


def _classes(values: pl.Series) -> pl.Series:
    """The labels among a column's values."""
    return values.drop_nulls().filter(~values.drop_nulls().is_in(_INFINITE))


def _strange(values: pl.Series) -> str | None:
    """The first value that is no number; None where all are."""
    known = values.drop_nulls()
    return next(iter(known.filter(known.cast(pl.Float64, strict=False).is_null())), None)


def _require_scores(path: str, values: pl.Series) -> None:
    """Check that scores are finite and on some scale.

    Raises:
        SourceError: with the first that is not, and its row.
    """
    wrong = (~(values.cast(pl.Float64).abs() <= _LARGEST_SCORE)).fill_null(value=False).arg_true()
    if len(wrong):
        row = int(wrong[0])
        raise SourceError(
            f"{path}: row {row + 1} has the score {values[row]!r} in column {values.name!r}, which is not finite or "
            f"beyond ±{_LARGEST_SCORE:,.0f}, expected a similarity; correct it, or leave it blank for none"
        )
