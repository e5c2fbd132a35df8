"""Somebody's own text: files of several formats at once, and a guess at what their columns hold, which is shown.

A guess looks at names first and at the first records then. It is told to the person (`TextSource.told`), who may say
otherwise; nothing is read by a column that was not told.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Final

import fsspec
import polars as pl
from pydantic import Field

from storage.artifacts.keys import NotInKey
from storage.assets.catalog import embedded_manifest
from storage.assets.embedded import EMBEDDED
from storage.errors import SourceError
from storage.filesystem.digests import joint_sha256
from storage.filesystem.names import perhaps_path
from storage.filesystem.urls import reachable, without_password
from storage.hub.datasets import table_files
from storage.readers.columns import SHAPES, Columns, known_shape, require
from storage.readers.formats import (
    Format,
    columns_of,
    format_of,
    is_readable,
    read_table,
    require_header,
)
from storage.readers.text_columns import PROSE_WORDS, first_records, is_prose
from storage.record import Record
from storage.sources.paths import listed
from storage.sources.sources import SourceSpec, mirrored_place, perhaps_meant, resolve_source, spec_of, stem_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from storage.readers.read_report import ReadReport

TITLES: Final = ("title", "headline", "heading", "subject")
_DOCUMENTS: Final = (
    "document", "document_id", "doc", "doc_id", "article", "article_id", "thread", "thread_id", "conversation",
    "conversation_id", "book", "chapter", "url", "page",
)  # fmt: skip
_TEXTS: Final = (
    "text", "sentence", "sentences", "content", "body", "review", "comment", "message", "post", "description",
    "abstract", "article", "passage", "document",
)  # fmt: skip
_END: Final = re.compile(r"[.!?…:;。！？][\"'”’)\]]*\s*$")
_PAGE: Final = 120  # characters; a longer line is not cut where a page ends
_MANY: Final = 20  # files of text, each of which is then a document whose lines have an order; fewer may be lists


class TextSource(Record):
    """Files of one format and of equal columns, and what is read of them."""

    name: str
    """What the column `source` says."""
    digest: str
    """sha256 of the files' content in order."""
    format: Format
    """Format of the files."""
    texts: tuple[str, ...] = Field(min_length=1)
    """Columns that hold text."""
    title: str | None = None
    """Column that holds the title of a record's document."""
    document: str | None = None
    """Column whose equal values make one document of a file's records; None where nothing says what a document is."""
    wrapped: bool = False
    """Whether lines are parts of paragraphs, which blank lines divide; else each line is a text."""
    lang: str = "en"
    """ISO 639 code of the text."""
    files: Annotated[tuple[str, ...], NotInKey] = ()
    """Where the content is."""
    found: Annotated[tuple[str, ...], NotInKey] = ()
    """All columns of the first file."""

    @property
    def ordered(self) -> bool:
        """Whether a file of text is a document, as its lines make paragraphs or there are many files; else a list."""
        return self.format == "txt" and (self.wrapped or len(self.files) >= _MANY)

    @property
    def told(self) -> dict[str, str]:
        """The guess as a row of a table."""
        left = [name for name in self.found if name not in (*self.texts, self.title, self.document)]
        files = f"{len(self.files)} files" if len(self.files) > 1 else self.files[0].rsplit("/", 1)[-1]
        line = "paragraphs of wrapped lines" if self.wrapped else "a text a line"
        return {
            "files": f"{self.name}: {files}",
            "format": self.format,
            "text": line if self.format == "txt" else ", ".join(self.texts),
            "title": self.title or "",
            "document": self.document or ("a file" if self.ordered else ""),
            "not read": ", ".join(left),
        }


def sources(
    paths: Sequence[str],
    *,
    mirror: str | None = None,
    lang: str = "en",
    columns: Sequence[str] = (),
    title: str | None = None,
    document: str | None = None,
) -> tuple[TextSource, ...]:
    """Find files and guess what their columns hold.

    Args:
        paths: files, folders (all readable files below them, none hidden), patterns with `*`, data sets: embedded,
            declared (`snli`, `stsb/test`), the Hub's on the mirror (`<hub id>[@<revision>][/<split>]`); formats may be
            mixed.
        mirror: folder that may hold data sets.
        lang: language of all of them.
        columns: those that hold text, where the guess is to be overruled; so `title` and `document`. Of a file with
            some of what is named these count, and lines of text have no columns.
        title: as in `TextSource`; "" where no column is one.
        document: as in `TextSource`; "" where no column makes one.

    Returns:
        One source for each path and each set of columns among its files; show `told` of each.

    Raises:
        SourceError: nothing is there, no file has a column that is named, or no column of a file holds text.
        ValueError: an address holds a password.
    """
    found: list[TextSource] = []
    located = [_files(without_password(path), mirror) for path in paths]
    held = {file: columns_of(file, format_of(file)) for _, files in located for file in files}
    every = tuple(dict.fromkeys(name for names in held.values() for name in names))
    for option, named in (("--columns", columns), ("--title", [title]), ("--document", [document])):
        require(", ".join(paths), every, [name for name in named if name], f"with `{option}`")
    for name, files in located:
        groups: dict[tuple[Format, tuple[str, ...], bool], list[TextSource]] = {}
        for file in files:
            guess = _guess(file, held[file], columns, title, document)
            groups.setdefault((guess.format, guess.found, guess.wrapped), []).append(guess)
        for same in groups.values():
            own = tuple(guess.files[0] for guess in same)
            stem = stem_of(own[0]) if len(own) == 1 else name
            told = {"name": stem, "digest": joint_sha256(own), "files": own, "lang": lang}
            found.append(same[0].model_copy(update=told))
    return tuple(found)


def records(source: TextSource, report: ReadReport) -> Iterator[pl.DataFrame]:
    """A source's records in reading order, file after file.

    Args:
        source: from `sources`.
        report: counts what is read and rejected.

    Yields:
        For each file, `text`, `title` and `document` (strings; the latter two null where there are none), `file` and
        `record` (UInt32, numbers); several columns of text are several rows of a record. Of wrapped lines, paragraphs
        are records.
    """
    others = tuple(name for name in (source.title, source.document) if name is not None and name not in source.texts)
    for number, path in enumerate(source.files):
        frames = list(read_table(path, source.format, Columns(source.texts, others), report))
        table = pl.concat(frames) if frames else pl.DataFrame(schema=dict.fromkeys((*source.texts, *others), pl.String))
        if source.wrapped:
            table = _unwrapped(table, source.texts[0])
        yield (
            table.select(
                text=pl.concat_list(source.texts),
                title=pl.lit(None, pl.String) if source.title is None else pl.col(source.title),
                document=pl.lit(None, pl.String) if source.document is None else pl.col(source.document),
                file=pl.lit(number, pl.UInt32),
                record=pl.int_range(pl.len(), dtype=pl.UInt32),
            )
            .explode("text")
            .filter(pl.col("text").is_not_null())
        )


def check_named(path: str, mirror: str | None = None) -> None:
    """Check that a name is that of files or of a dataset, before anything of it is read or fetched.

    Args:
        path: as `sources` takes it.
        mirror: folder that may hold datasets.

    Raises:
        SourceError: there is nothing of that name; the message has the nearest.
        AssetError: no such embedded asset.
        ValueError: an address holds a password.
    """
    spec = _dataset_of(without_password(path), mirror)
    if spec is None:
        listed(path)
    elif path.startswith(EMBEDDED):
        embedded_manifest(path.removeprefix(EMBEDDED))
    else:
        mirrored_place(spec)  # a declared dataset has the split


def _dataset_of(path: str, mirror: str | None) -> SourceSpec | None:
    """The dataset of a name; None for files."""
    if path.startswith(EMBEDDED):
        return SourceSpec(dataset=path)
    fs, root = fsspec.url_to_fs(path)
    if "*" in path or fs.exists(root):
        return None
    if (spec := _named(path, mirror)) is None:
        hint = perhaps_path(path) or perhaps_meant(path)
        raise SourceError(f"{path}: no such file or folder, and no data set{hint}; correct it")
    return spec


def _files(path: str, mirror: str | None) -> tuple[str, tuple[str, ...]]:
    spec = _dataset_of(path, mirror)
    if spec is None:
        return stem_of(path), listed(path)
    resolved = resolve_source(spec, mirror)  # which says what was tried where nobody has it
    return resolved.name, resolved.files if resolved.hub is None else table_files(resolved.hub)


def _named(name: str, mirror: str | None) -> SourceSpec | None:
    """The data set that a name which is no file's may mean: declared, the Hub's, or a mirror's own."""
    if is_readable(name):
        return None
    if (spec := spec_of(name)) is not None or mirror is None or "/" in name:
        return spec
    spec = SourceSpec(dataset=name)
    with reachable(mirror):
        fs, root = fsspec.url_to_fs(f"{mirror.rstrip('/')}/{mirrored_place(spec)}")
        return spec if fs.isfile(root) else None


def _guess(
    path: str, held: tuple[str, ...], columns: Sequence[str], title: str | None, document: str | None
) -> TextSource:
    """What the columns of a file hold: as asked of those that it has, else by their names and its first records."""
    kind = format_of(path)
    columns = [name for name in columns if name in held]
    title, document = (name if name in ("", *held) else None for name in (title, document))
    sample = first_records(path, kind)
    if not columns and known_shape(held) is None:
        require_header(path, kind, sample)
    plain = TextSource(name=path, digest="", format=kind, texts=held[:1], files=(path,), found=held)
    if kind == "txt":
        return plain.model_copy(update={"wrapped": _is_wrapped(sample[held[0]])})
    lower = {name.lower(): name for name in held}
    if title is None:
        title = next((lower[name] for name in TITLES if name in lower and lower[name] not in columns), None)
    title = title or None
    texts = tuple(columns) or _texts(sample, lower, title)
    if not texts:
        raise SourceError(
            f"{path}: none of {', '.join(map(repr, held))} has over {PROSE_WORDS:g} words a record; name --columns"
        )
    if document is None:
        document = next((lower[name] for name in _DOCUMENTS if lower.get(name, texts[0]) not in texts), None)
    return plain.model_copy(
        update={"texts": texts, "title": title if title not in texts else None, "document": document or None}
    )


def _texts(sample: pl.DataFrame, lower: dict[str, str], title: str | None) -> tuple[str, ...]:
    """Those of a known shape, else a column of prose with a known name, else all of prose, a title aside."""
    prose = [name for name in sample.columns if name != title and is_prose(sample[name])]
    shape = next((shape.texts for shape in SHAPES if {*shape.texts} <= {*sample.columns}), None)
    if shape is not None:
        return shape
    known = next((lower[name] for name in _TEXTS if lower.get(name) in prose), None)
    if known is None and title is not None and not prose and is_prose(sample[title]):
        return (title,)
    return (known,) if known is not None else tuple(prose)


def _is_wrapped(lines: pl.Series) -> bool:
    """Whether lines are cut where a page ends: blank ones divide paragraphs, and most others end no sentence."""
    full = [line for line in lines if line.strip()]
    if len(full) == len(lines) or len(full) < 4:
        return False
    ended = sum(_END.search(line) is not None for line in full) / len(full)
    short = sum(len(line) <= _PAGE for line in full) / len(full)
    return ended < 0.6 and short > 0.9


def _unwrapped(lines: pl.DataFrame, column: str) -> pl.DataFrame:
    """Paragraphs: lines between blank ones, joined."""
    stripped = pl.col(column).str.strip_chars()
    return (
        lines.with_columns(paragraph=(stripped == "").cum_sum())
        .filter(stripped != "")
        .group_by("paragraph", maintain_order=True)
        .agg(pl.col(column).str.join(" "))
        .select(column)
    )
