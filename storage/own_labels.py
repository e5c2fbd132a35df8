"""Somebody's own labels: texts with classes, or pairs of sentences with scores of how alike they are."""

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

if TYPE_CHECKING:
    from collections.abc import Sequence

_CLASSES: Final = ("label", "class", "category", "target", "topic", "rating", "sentiment")
_SCORES: Final = ("score", "similarity", "gold", "label")
_TEXTS: Final = ("text", "sentence", "review", "comment", "message", "content", "body", "title")
_PAIRS: Final = (("sentence1", "sentence2"), ("sentence_1", "sentence_2"), ("text1", "text2"), ("text_1", "text_2"))


class OwnLabels(BaseModel):
    """A file of labels that was found, and what its columns hold."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    name: str
    """What tables call it."""
    digest: str
    """sha256 of the file."""
    format: Format
    """Of the file."""
    sides: tuple[str, ...]
    """The column of text, or the two of a pair."""
    label: str
    """The column of classes or scores."""
    kind: Literal["classes", "scores"]
    """Of one text a class, of two a score."""
    path: Annotated[str, NotInKey]
    """Where it lies."""

    @property
    def told(self) -> str:
        """The guess, for people."""
        return f"{self.name}: {self.kind} by {self.label!r} of {' and '.join(map(repr, self.sides))}"

    def read(self) -> pl.DataFrame:
        """`text`, or `sentence1` and `sentence2`; and `class` (its number, by name) or `score`.

        Raises:
            SourceError: a score is no number, or nothing is labelled.
        """
        report = ReadReport(self.name)
        frames = list(read_table(self.path, self.format, Columns(self.sides, (self.label,)), report))
        said = pl.col(self.label).cast(pl.String).str.strip_chars()
        labelled = [frame.with_columns(said).drop_nulls().filter(pl.col(self.label) != "") for frame in frames]
        rows = pl.concat(labelled) if labelled else pl.DataFrame()
        if rows.is_empty():
            raise SourceError(f"{self.path}: no row has text and {self.label!r}, expected labels; correct the file")
        if self.kind == "classes":
            classes = pl.col(self.label).rank("dense").cast(pl.Int64) - 1
            return rows.select(text=self.sides[0], **{"class": classes})
        scores = rows[self.label].cast(pl.Float64, strict=False)
        if scores.null_count():
            first = rows[self.label].filter(scores.is_null())[0]
            raise SourceError(f"{self.path}: column {self.label!r} holds {first!r}, expected numbers; correct the file")
        return rows.select(sentence1=self.sides[0], sentence2=self.sides[1], score=scores)


def find_labels(path: str) -> OwnLabels:
    """Find a file of labels and guess what its columns hold, by their names.

    Raises:
        SourceError: it is missing, or its columns are not those of labels.
    """
    kind = format_of(path)
    held = columns_of(path, kind, ReadReport(path))
    pair = next((pair for pair in _PAIRS if set(pair) <= set(held)), None)
    label = _first(held, _SCORES if pair else _CLASSES)
    text = None if pair else _first(held, _TEXTS)
    sides = pair or ((text,) if text else ())
    if not sides or label is None:
        raise SourceError(
            f"{path} has the columns {', '.join(map(repr, held))}; expected text and label (classes), or sentence1, "
            "sentence2 and score; name the columns so"
        )
    return OwnLabels(
        name=path.rstrip("/").rsplit("/", 1)[-1].split(".", 1)[0],
        digest=source_sha256(path),
        format=kind,
        sides=sides,
        label=label,
        kind="scores" if pair else "classes",
        path=path,
    )


def _first(held: Sequence[str], known: Sequence[str]) -> str | None:
    lower = {name.lower(): name for name in held}
    return next((lower[name] for name in known if name in lower), None)
