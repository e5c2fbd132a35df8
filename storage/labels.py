"""Somebody's labels: pairs of sentences with a score, or sentences with a class, by the columns of one file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

import polars as pl
from pydantic import BaseModel, ConfigDict

from storage.errors import SourceError
from storage.keys import NotInKey
from storage.mirror_record import source_sha256
from storage.readers.columns import Columns
from storage.readers.prose import is_prose
from storage.readers.report import ReadReport
from storage.readers.table import Format, columns_of, format_of, read_table, readable_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

_SCORES: Final = ("score", "similarity", "rating", "gold", "relatedness_score", "label")
_CLASSES: Final = ("label", "class", "category", "intent", "topic", "sentiment", "rating", "stars", "target")
_MOST_CLASSES: Final = 100


class LabelSource(BaseModel):
    """A file of labelled text, and what is read of it."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

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
    held = columns_of(path, form, ReadReport(path))
    table = _table(path, form, readable_columns(path, form, ReadReport(path)))
    prose = [name for name in table.columns if is_prose(table[name].head(200))]
    # Of their different values too: 300 questions may have 15 answers between them.
    repeated = [name for name in table.columns if is_prose(table[name].unique(maintain_order=True).head(200))]
    found = _taken(table, prose) or _taken(table, repeated)
    if found is not None:
        kind, texts, label = found
        source = LabelSource(
            digest=source_sha256(path), format=form, kind=kind, texts=tuple(texts), label=label, path=path
        )
        return source.model_copy(update={"left_out": table.height - _labelled(source, table).height})
    raise SourceError(
        f"{path} has the columns {', '.join(map(repr, held))}, of which {', '.join(map(repr, repeated)) or 'none'} "
        f"hold text; expected two of text and a number ({', '.join(_SCORES)}), or one of text and a class "
        f"({', '.join(_CLASSES)}); rename the columns"
    )


def read_labels(source: LabelSource) -> pl.DataFrame:
    """Labelled rows in order: `text_1`, `text_2` (null of classes), `label` (a string); rows without all are left out.

    Raises:
        SourceError: the file cannot be read.
    """
    return _labelled(source, _table(source.path, source.format, (*source.texts, source.label)))


def _taken(table: pl.DataFrame, prose: list[str]) -> tuple[Literal["pairs", "classes"], list[str], str] | None:
    """What the labels are, their columns of text and their own; None where these columns of text are of no labels."""
    lower = {name.lower(): name for name in table.columns if name not in prose}
    score = next((lower[name] for name in _SCORES if name in lower and _numbers(table[lower[name]])), None)
    if len(prose) == 2 and score is not None:
        return "pairs", prose, score
    chosen = next((lower[name] for name in _CLASSES if name in lower), None)
    if len(prose) == 1 and chosen is not None and 2 <= table[chosen].drop_nulls().n_unique() <= _MOST_CLASSES:
        return "classes", prose, chosen
    return None


def _labelled(source: LabelSource, table: pl.DataFrame) -> pl.DataFrame:
    second = pl.col(source.texts[1]) if len(source.texts) == 2 else pl.lit(None, pl.String)
    rows = table.drop_nulls([*source.texts, source.label])
    return rows.select(text_1=pl.col(source.texts[0]), text_2=second, label=pl.col(source.label))


def _table(path: str, kind: Format, columns: Sequence[str]) -> pl.DataFrame:
    frames = list(read_table(path, kind, Columns((), tuple(columns)), ReadReport(path)))
    if not frames:
        raise SourceError(f"{path} holds no record; give labelled text, or leave --labels out")
    # CSV has no null: what is blank there is what another format leaves out.
    return pl.concat(frames).cast(pl.String).select(pl.all().str.strip_chars().replace("", None))


def _numbers(values: pl.Series) -> bool:
    known = values.drop_nulls()
    return bool(known.cast(pl.Float64, strict=False).is_finite().fill_null(value=False).all()) and known.n_unique() > 1
