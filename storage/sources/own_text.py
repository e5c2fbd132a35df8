"""Find the user's own text: files of several formats, with a guess at the role of each column.

The guess uses column names first, then the first records. The user sees it (`TextSource.summary`) and may overrule it;
only the columns shown are read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Final

import fsspec
import polars as pl
from pydantic import Field

from bsl.storage.assets.embedded import EMBEDDED, TEXTS, embedded_folder
from bsl.storage.errors import SourceError
from bsl.storage.filesystem.digests import joint_sha256
from bsl.storage.filesystem.secrets import without_password
from bsl.storage.filesystem.spelling import perhaps_path
from bsl.storage.filesystem.urls import absolute, reachable
from bsl.storage.readers.columns import Columns, known_shape, named, require
from bsl.storage.readers.formats import Format, columns_of, format_of, is_readable, read_table
from bsl.storage.readers.text_columns import PROSE_WORDS, check_texts, first_records, is_prose, require_header
from bsl.storage.record import NotInKey, Record
from bsl.storage.sources.paths import listed, other_suffixes
from bsl.storage.sources.read import local_files
from bsl.storage.sources.sources import SourceSpec, mirrored_table, perhaps_meant, resolve_source, spec_of, stem_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bsl.storage.readers.read_report import ReadReport
    from bsl.storage.sources.reading_config import ReadingConfig

SET_PREFIX: Final = "own:"
"""Before a text in the name of an evaluation set."""
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
_PAGE: Final = 120  # characters; a longer line was not wrapped at a page's width
_MANY: Final = 20  # with this many text files, each is a document with ordered lines; fewer may be lists


class TextSource(Record):
    """Files of one format with equal columns, and the columns to read."""

    name: str
    """Value of the column `source`."""
    digest: str
    """sha256 of the files' content in order."""
    format: Format
    texts: tuple[str, ...] = Field(min_length=1)
    title: str | None = None
    """Column with the title of the document."""
    document: str | None = None
    """Column whose equal values group a file's records into documents; None if there is none."""
    wrapped: bool = False
    """Whether lines are parts of paragraphs separated by blank lines; otherwise each line is a text."""
    lang: str = "en"
    """ISO 639 code of the text."""
    encoding: str | None = None
    """Encoding of the files that are not UTF-8."""
    files: Annotated[tuple[str, ...], NotInKey] = ()
    found: Annotated[tuple[str, ...], NotInKey] = ()
    """All columns of the first file."""
    others: Annotated[tuple[tuple[str, int], ...], NotInKey] = ()
    """Suffixes of the files of unknown formats in the folder or pattern, and their numbers."""

    @property
    def ordered(self) -> bool:
        """Whether a text file is a document with ordered lines: lines form paragraphs, or there are many files."""
        return self.format == "txt" and (self.wrapped or len(self.files) >= _MANY)

    @property
    def summary(self) -> dict[str, str]:
        """The guess, as a row of a table."""
        unread = [name for name in self.found if name not in (*self.texts, self.title, self.document)]
        files = f"{len(self.files)} files" if len(self.files) > 1 else self.files[0].rsplit("/", 1)[-1]
        others = ", ".join(f"{count:,} {suffix}" for suffix, count in self.others)
        skipped = [f"files: {others}"] if others else []
        line = "paragraphs of wrapped lines" if self.wrapped else "one text per line"
        return {
            "files": f"{self.name}: {files}",
            "format": self.format,
            "text": line if self.format == "txt" else ", ".join(self.texts),
            "title": self.title or "",
            "document": self.document or ("one per file" if self.ordered else ""),
            "not read": ", ".join([*(name or "(a column without a name)" for name in unread), *skipped]),
        }


def text_sources(
    reading: ReadingConfig, paths: Sequence[str], mirror: str | None = None, *, needs_document: bool = True
) -> tuple[TextSource, ...]:
    """Find files and guess the role of their columns. In each file, the named columns that exist are used.

    Args:
        reading: The named columns, the language and the encoding.
        paths: Files, folders (all readable files below them, except hidden ones), patterns with `*`, or datasets:
            embedded, declared (`snli`, `stsb/test`), on the Hub or mirror (`<hub id>[@<revision>][/<split>]`).
            Formats may be mixed.
        mirror: Folder that may contain datasets.
        needs_document: Whether one of the files must have the column `document`.

    Returns:
        One source for each path and each set of columns among its files.

    Raises:
        SourceError: A path has no files, no file has a named column, or a file has no text column.
        ValueError: No path is given, or an address contains a password.
    """
    if not paths:
        raise ValueError("no text is given, expected at least one file, folder, pattern or dataset")
    found: list[TextSource] = []
    located = [_files(without_password(path), mirror) for path in paths]
    columns = {
        file: columns_of(file, format_of(file), encoding=reading.encoding) for _, files in located for file in files
    }
    every = tuple(dict.fromkeys(name for names in columns.values() for name in names))
    documents = [reading.document] if needs_document else []
    options = (("--columns", reading.columns), ("--title", [reading.title]), ("--document", documents))
    for option, names in options:
        require(", ".join(paths), every, [name for name in names if name], f"with `{option}`")
    for path, (name, files) in zip(paths, located, strict=True):
        groups: dict[tuple[Format, tuple[str, ...], bool], list[TextSource]] = {}
        others = tuple(sorted(other_suffixes(path).items())) if _dataset_of(path, mirror) is None else ()
        for file in files:
            guess = _guess(file, columns[file], reading)
            groups.setdefault((guess.format, guess.found, guess.wrapped), []).append(guess)
        for same in groups.values():
            own_files = tuple(guess.files[0] for guess in same)
            check_texts(own_files[0], same[0].format, same[0].texts, encoding=reading.encoding)
            stem = stem_of(own_files[0]) if len(own_files) == 1 else name
            same_files = {"name": stem, "digest": joint_sha256(own_files), "files": own_files, "others": others}
            found.append(same[0].model_copy(update=same_files))
            others = ()  # shown once
    return tuple(found)


def records(source: TextSource, report: ReadReport) -> Iterator[pl.DataFrame]:
    """Yield a source's records in reading order, file by file; `report` counts what is read and rejected.

    Yields:
        For each file, `text`, `title` and `document` (strings; title and document may be null), `file` and `record`
        (UInt32, numbers). A record with several text columns becomes several rows. If lines are wrapped, a record is a
        paragraph.
    """
    named_too = dict.fromkeys((source.title, source.document))  # perhaps the same column
    others = tuple(name for name in named_too if name is not None and name not in source.texts)
    for number, path in enumerate(source.files):
        columns = Columns(source.texts, others)
        frames = list(read_table(path, source.format, columns, report, encoding=source.encoding))
        table = pl.concat(frames) if frames else pl.DataFrame(schema=dict.fromkeys((*source.texts, *others), pl.String))
        if source.wrapped:
            table = _unwrapped(table, source.texts[0])
        yield (
            table.select(
                text=pl.concat_list(source.texts),
                title=_as_strings(source.title),
                document=_as_strings(source.document),
                file=pl.lit(number, pl.UInt32),
                record=pl.int_range(pl.len(), dtype=pl.UInt32),
            ).explode("text")
        )


def _as_strings(column: str | None) -> pl.Expr:
    """Return a column of titles or documents, which may be numbers in Parquet and Arrow files."""
    return (pl.lit(None) if column is None else pl.col(column)).cast(pl.String)


def check_named(path: str, mirror: str | None = None) -> None:
    """Check that a file, folder or dataset exists, without reading or fetching it; see `text_sources`.

    Raises:
        SourceError, AssetError: nothing has this name; the message suggests the nearest.
        ValueError: an address contains a password.
    """
    spec = _dataset_of(without_password(path), mirror)
    if spec is None:
        listed(path)
    elif path.startswith(EMBEDDED):
        embedded_folder(path.removeprefix(EMBEDDED), kinds=TEXTS)
    else:
        mirrored_table(spec, None)  # raises an error if a declared dataset has no such split


def source_named(path: str, mirror: str | None = None) -> SourceSpec:
    """Return the source of a name as in `text_sources`; a local path becomes absolute, for workers.

    Raises:
        SourceError, AssetError: nothing has this name.
        ValueError: an address contains a password.
    """
    spec = _dataset_of(without_password(path), mirror)
    if spec is not None:
        return spec
    return SourceSpec(path=absolute(path))


def _dataset_of(path: str, mirror: str | None) -> SourceSpec | None:
    """Return the dataset of a name; None for files."""
    if path.startswith(EMBEDDED):
        return SourceSpec(dataset=path)
    with reachable(path):
        fs, root = fsspec.url_to_fs(path)
        if "*" in path or fs.exists(root):
            return None
    spec = None if is_readable(path) else spec_of(path)
    if spec is None and mirror is not None and "/" not in path:
        with reachable(mirror):
            dataset = SourceSpec(dataset=path)
            spec = dataset if mirrored_table(dataset, mirror) else None
    if spec is None:
        hint = perhaps_path(path) or perhaps_meant(path)
        raise SourceError(f"{path}: no such file, folder or dataset{hint}. Correct the name.")
    return spec


def _files(path: str, mirror: str | None) -> tuple[str, tuple[str, ...]]:
    spec = _dataset_of(path, mirror)
    if spec is None:
        return stem_of(path), listed(path)
    resolved = resolve_source(spec, mirror)  # its error lists the locations tried
    return resolved.name, local_files(resolved)


def _guess(path: str, found: tuple[str, ...], reading: ReadingConfig) -> TextSource:
    """Guess the columns to read: the named ones that exist, else by column names and the first records."""
    kind = format_of(path)
    if not found:
        raise SourceError(f"{path}: no columns, expected one with text. Correct the file.")
    columns = [name for name in dict.fromkeys(reading.columns) if name in found]
    title, document = (name if name in ("", *found) else None for name in (reading.title, reading.document))
    sample = first_records(path, kind, encoding=reading.encoding)
    if not columns and known_shape(found) is None:
        require_header(path, kind, sample)
    plain = TextSource(
        name=path,
        digest="",
        format=kind,
        texts=found[:1],
        lang=reading.lang,
        encoding=reading.encoding,
        files=(path,),
        found=found,
    )
    if kind == "txt":
        return plain.model_copy(update={"wrapped": _is_wrapped(sample[found[0]])})
    if title is None:  # `sample` is without columns that cannot be read
        title = next(named((name for name in sample.columns if name not in columns), TITLES), None)
    title = title or None
    texts = tuple(columns) or _texts(sample, title)
    if not texts:
        unread = ", ".join(repr(name) for name in found if name not in sample.columns)
        why = f" ({unread}: values are not strings)" if unread else ""
        choice = "Name the text columns with --columns" if sample.width else ""
        remedy = f"{f'{choice}, or write' if choice else 'Write'} {unread} as strings" if unread else choice
        raise SourceError(
            f"{path}: no text column in {', '.join(map(repr, found))}{why}, expected more than {PROSE_WORDS:g} words "
            f"per record. {remedy}."
        )
    if document is None:
        document = next(named((name for name in sample.columns if name not in texts), _DOCUMENTS), None)
    return plain.model_copy(
        update={"texts": texts, "title": title if title not in texts else None, "document": document or None}
    )


def _texts(sample: pl.DataFrame, title: str | None) -> tuple[str, ...]:
    """Return the text columns: a known shape, else a prose column with a usual name, else all prose except titles."""
    prose = [name for name in sample.columns if name != title and is_prose(sample[name])]
    if (shape := known_shape(sample.columns, texts_only=True)) is not None:
        return shape.texts
    known = next(named(prose, _TEXTS), None)
    if known is None and title is not None and not prose and is_prose(sample[title]):
        return (title,)
    return (known,) if known is not None else tuple(prose)


def _is_wrapped(lines: pl.Series) -> bool:
    """Return whether lines are wrapped: blank lines separate paragraphs, and most lines do not end a sentence."""
    filled = [line for line in lines if line.strip()]
    if len(filled) == len(lines) or len(filled) < 4:
        return False
    ended = sum(_END.search(line) is not None for line in filled) / len(filled)
    short = sum(len(line) <= _PAGE for line in filled) / len(filled)
    return ended < 0.6 and short > 0.9


def _unwrapped(lines: pl.DataFrame, column: str) -> pl.DataFrame:
    """Return paragraphs: the lines between blank lines, joined."""
    stripped = pl.col(column).str.strip_chars()
    return (
        lines.with_columns(paragraph=(stripped == "").cum_sum())
        .filter(stripped != "")
        .group_by("paragraph", maintain_order=True)
        .agg(pl.col(column).str.join(" "))
        .select(column)
    )
