"""Read a resolved source as frames, from files or from the Hub."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage.errors import SourceError
from storage.hub.datasets import table_files
from storage.readers.columns import (
    Columns,
    known_shape,
    no_shape,
    read_nli,
    read_sts,
    require,
    scored_shape,
)
from storage.readers.formats import columns_of, format_of, read_table
from storage.readers.read_report import NAME_COLUMNS
from storage.readers.text_columns import only_prose

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from storage.readers.formats import Format
    from storage.readers.read_report import ReadReport
    from storage.sources.sources import ResolvedSource


def read_source(source: ResolvedSource, report: ReadReport, max_bad_share: float) -> Iterator[pl.DataFrame]:
    """Yield a source's sentences as frames of its text columns, with or without labels in the source.

    Args:
        source: from `resolve_source`.
        report: counts what is read and rejected.
        max_bad_share: share of unreadable records above which the source is refused.

    Raises:
        SourceError: a file or column is missing, or too many records cannot be read.
    """
    for path, kind in _files(source):
        yield from read_table(path, kind, Columns(_shape(source, path, kind).texts), report)
    report.check(max_bad_share)


def read_nli_pairs(source: ResolvedSource, report: ReadReport, max_bad_share: float) -> Iterator[pl.DataFrame]:
    """Yield a source's NLI pairs: `premise`, `hypothesis`, `label` (Int8: 0 entailment, 1 neutral, 2 contradiction).

    Raises:
        SourceError: as for `read_source`, or the source has no labelled pairs.
    """
    for path, kind in _files(source):
        shape = _shape(source, path, kind)
        yield from read_nli(read_table(path, kind, shape, report), shape, report)
    report.check(max_bad_share)


def read_beside(
    source: ResolvedSource, column: str, report: ReadReport, max_bad_share: float
) -> Iterator[pl.DataFrame]:
    """Yield a source's sentences with another column of it: `text`, `view`.

    Raises:
        SourceError: as for `read_source`, or the source has several columns of sentences.
    """
    for path, kind in _files(source):
        texts = _shape(source, path, kind).texts
        if len(texts) != 1 or column in texts:
            raise SourceError(
                f"{path} has sentences in {', '.join(map(repr, texts))}, expected one column of them beside the views "
                f"in {column!r}; name it {NAME_COLUMNS}"
            )
        for frame in read_table(path, kind, Columns((*texts, column)), report):
            yield frame.rename({texts[0]: "text", column: "view"})
    report.check(max_bad_share)


def is_nli(source: ResolvedSource) -> bool:
    """Return whether a source has labelled NLI pairs, judged by the columns of its first file.

    Raises:
        SourceError: a column that the source names is missing, or the columns have no known shape.
    """
    shape = _shape(source, *_files(source)[0])
    return shape.label is not None and len(shape.texts) == 2


def read_scored_pairs(source: ResolvedSource, report: ReadReport, low: float = 0, high: float = 5) -> pl.DataFrame:
    """Return a source's STS pairs in order: `subset`, `sentence1`, `sentence2`, `score` from `low` to `high`.

    Raises:
        SourceError: a column is missing, a record cannot be read or a score is outside its range.
    """
    found = source_columns(source)
    shape = scored_shape(report.name, found, source.columns)
    wanted = Columns(shape.texts, (*shape.others, *(["subset"] if "subset" in found else ())))
    return read_sts(read_columns(source, wanted, report), low, high, report, shape)


def read_columns(source: ResolvedSource, wanted: Columns, report: ReadReport) -> Iterator[pl.DataFrame]:
    """Yield chosen columns of a source, in order, for readers of other shapes (STS pairs, labelled NLI).

    Raises:
        SourceError: a file or column is missing, or a record cannot be read.
    """
    for path, kind in _files(source):
        yield from read_table(path, kind, wanted, report)
    report.check(max_bad_share=0.0)


def source_columns(source: ResolvedSource) -> tuple[str, ...]:
    """Return the columns of a source's first file."""
    return columns_of(*_files(source)[0])


def local_files(source: ResolvedSource) -> tuple[str, ...]:
    """Return a source's files; the files of a Hub table are fetched first if necessary."""
    return source.files if source.hub is None else table_files(source.hub)


def check_columns(source: ResolvedSource) -> tuple[str, ...]:
    """Return the text columns that would be read, over all files of a source.

    Raises:
        SourceError: a file or column is missing, or the columns have no known shape.
    """
    return tuple(dict.fromkeys(text for file in _files(source) for text in _shape(source, *file).texts))


def _files(source: ResolvedSource) -> list[tuple[str, Format]]:
    """Return a source's files, each with its format."""
    return [(path, source.format or format_of(path)) for path in local_files(source)]


def _shape(source: ResolvedSource, path: str, kind: Format) -> Columns:
    """Return the columns to read of a file: those the source names, a known shape, or the only column of prose."""
    found = columns_of(path, kind)
    if source.columns:
        shape = Columns(source.columns, (source.label,) if source.label else ())
        require(path, found, shape.names)
        return shape
    if (known := known_shape(found)) is not None:
        return known
    text = only_prose(path, kind, found)
    if text is None:
        raise no_shape(path, found)
    return Columns((text,))
