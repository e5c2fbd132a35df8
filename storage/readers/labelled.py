"""Labelled sentences of the transfer sets, from a table or from SentEval's own files."""

from collections.abc import Sequence

import fsspec
import polars as pl

from storage.errors import SourceError
from storage.readers.columns import Columns
from storage.readers.report import ReadReport
from storage.readers.source import read_columns
from storage.sources import ResolvedSource
from storage.transfer import TransferSet

CLASS = "class"


def read_labelled_table(source: ResolvedSource, declared: TransferSet, report: ReadReport) -> pl.DataFrame:
    """A split as a table: its texts, and `class` (Int64) by the set's order of classes.

    Raises:
        SourceError: a column is missing, or a label is none of the set's.
    """
    frames = list(read_columns(source, Columns(declared.texts, (declared.label,)), report))
    table = pl.concat(frames).with_columns(pl.col(declared.label).cast(pl.String))
    return _numbered(table.rename({declared.label: CLASS}), declared, report)


def read_senteval_files(
    sources: Sequence[tuple[ResolvedSource, str]], declared: TransferSet, report: ReadReport
) -> pl.DataFrame:
    """A split from SentEval's files, as `read_labelled_table`; blank lines are dropped.

    Args:
        sources: the split's files with the label of all their lines, as declared.
        declared: how lines are spelled.
        report: counts what is read.

    Raises:
        SourceError: a line has another form, or a label is none of the set's.
    """
    rows = [row for source, label in sources for row in _lines(source.files[0], label, declared)]
    report.records += len(rows)
    report.check(max_bad_share=0.0)
    table = pl.DataFrame(
        [(*texts, label) for texts, label in rows], schema=[*declared.texts, CLASS], orient="row", strict=True
    )
    return _numbered(table, declared, report)


def _lines(path: str, label: str, declared: TransferSet) -> list[tuple[tuple[str, ...], str]]:
    with fsspec.open(path, "rb") as file:
        lines = _decoded(file.read()).split("\n")
    out = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or (number == 1 and declared.header):
            continue
        try:
            out.append(declared.parse(line.strip(), label))
        except (ValueError, IndexError) as error:
            raise SourceError(
                f"{path}, line {number}: {line[:100]!r} has not the form of this set's files; expected the file that "
                "SentEval's download script makes; fetch it again"
            ) from error
    return out


def _decoded(content: bytes) -> str:
    """The files are UTF-8 or, as first distributed, Windows' superset of Latin-1."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", errors="replace")


def _numbered(table: pl.DataFrame, declared: TransferSet, report: ReadReport) -> pl.DataFrame:
    number = pl.col(CLASS).replace_strict(
        list(declared.classes), list(range(len(declared.classes))), default=None, return_dtype=pl.Int64
    )
    found = table.select(*declared.texts, number)
    unknown = found[CLASS].is_null().arg_true()
    if len(unknown):
        row = int(unknown[0])
        raise SourceError(
            f"{report.name}: row {row + 1} has the label {table[CLASS][row]!r}, expected one of "
            f"{', '.join(declared.classes)}; correct it, or name the right column"
        )
    return found
