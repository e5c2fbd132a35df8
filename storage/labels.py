"""Somebody's labels: pairs of sentences with a score, or sentences with a class, by the columns of one file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

import polars as pl
from pydantic import BaseModel, ConfigDict

from storage.errors import SourceError
from storage.keys import NotInKey
from storage.mirror_record import source_sha256
from storage.readers.columns import Columns
from storage.readers.report import ReadReport
from storage.readers.table import Format, columns_of, format_of, read_table
from storage.texts import is_prose

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

    @property
    def told(self) -> str:
        """The guess in a sentence."""
        texts = " and ".join(f"`{text}`" for text in self.texts)
        what = "scored pairs" if self.kind == "pairs" else "classes"
        return f"labels: {what}, text in {texts}, {'score' if self.kind == 'pairs' else 'class'} in `{self.label}`"


def label_source(path: str) -> LabelSource:
    """Find a file of labels and guess its columns.

    Raises:
        SourceError: it is not there, or its columns are neither scored pairs nor classes.
    """
    kind = format_of(path)
    held = columns_of(path, kind, ReadReport(path))
    table = _table(path, kind, held)
    prose = [name for name in held if is_prose(table[name].head(200))]
    others = [name for name in held if name not in prose]
    lower = {name.lower(): name for name in others}
    digest = source_sha256(path)
    score = next((lower[name] for name in _SCORES if name in lower and _numbers(table[lower[name]])), None)
    if len(prose) == 2 and score is not None:
        return LabelSource(digest=digest, format=kind, kind="pairs", texts=tuple(prose), label=score, path=path)
    chosen = next((lower[name] for name in _CLASSES if name in lower), None)
    if len(prose) == 1 and chosen is not None and 2 <= table[chosen].drop_nulls().n_unique() <= _MOST_CLASSES:
        return LabelSource(digest=digest, format=kind, kind="classes", texts=tuple(prose), label=chosen, path=path)
    raise SourceError(
        f"{path} has the columns {', '.join(map(repr, held))}, of which {', '.join(map(repr, prose)) or 'none'} hold "
        f"text; expected two of text and a number ({', '.join(_SCORES)}), or one of text and a class "
        f"({', '.join(_CLASSES)}); rename the columns"
    )


def read_labels(source: LabelSource) -> pl.DataFrame:
    """Labelled rows in order: `text_1`, `text_2` (null of classes), `label` (a string); rows without one are left out.

    Raises:
        SourceError: the file cannot be read.
    """
    table = _table(source.path, source.format, (*source.texts, source.label))
    second = pl.col(source.texts[1]) if len(source.texts) == 2 else pl.lit(None, pl.String)
    rows = table.select(text_1=pl.col(source.texts[0]), text_2=second, label=pl.col(source.label).cast(pl.String))
    return rows.filter(pl.col("text_1").is_not_null() & pl.col("label").is_not_null())


def _table(path: str, kind: Format, columns: Sequence[str]) -> pl.DataFrame:
    frames = list(read_table(path, kind, Columns((), tuple(columns)), ReadReport(path)))
    if not frames:
        raise SourceError(f"{path} holds no record; give labelled text, or leave --labels out")
    return pl.concat(frames).cast(pl.String)


def _numbers(values: pl.Series) -> bool:
    known = values.drop_nulls()
    return bool(known.cast(pl.Float64, strict=False).is_not_null().all()) and known.n_unique() > 1
