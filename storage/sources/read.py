"""Read a resolved source as frames, from files or from the Hub; check its labels and scores.

Pairs without a gold label ("-" in the original files, −1 on the Hub; 785 in SNLI's training split) are dropped from the
labelled pairs and counted. Their sentences remain in the corpus, which is read without labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from bsl.storage.errors import SourceError
from bsl.storage.hub.datasets import table_files
from bsl.storage.readers.columns import SCORED_SHAPES, SHAPES, Columns, known_shape, require
from bsl.storage.readers.formats import columns_of, format_of, read_table
from bsl.storage.readers.read_report import NAME_COLUMNS
from bsl.storage.readers.text_columns import check_texts, first_records, is_prose, require_header

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bsl.storage.readers.formats import Format
    from bsl.storage.readers.read_report import ReadReport
    from bsl.storage.sources.sources import ResolvedSource


LABELS: Final = ("entailment", "neutral", "contradiction")  # their positions are the Hub's label numbers
_UNLABELLED: Final = ("-", "-1", "-1.0", "")
# A column of whole numbers with gaps has decimals in a CSV file of pandas.
_CODES: Final = {spelled: code for code, name in enumerate(LABELS) for spelled in (name, str(code), f"{code}.0")}
STS: Final = pl.Schema({"subset": pl.String, "sentence1": pl.String, "sentence2": pl.String, "score": pl.Float64})


def read_source(
    source: ResolvedSource, report: ReadReport, max_bad_share: float, *, keep_nulls: bool = False
) -> Iterator[pl.DataFrame]:
    """Yield a source's sentences, as frames of its text columns; `report` counts what is read and rejected.

    A null text is an empty string, unless `keep_nulls`.

    Raises:
        SourceError: a file or column is missing, or the share of unreadable records exceeds `max_bad_share`.
    """
    for path, kind in _files(source):
        texts = Columns(_shape(source, path, kind).texts)
        yield from read_table(path, kind, texts, report, encoding=source.encoding, keep_nulls=keep_nulls)
    report.check(max_bad_share)


def read_nli_pairs(source: ResolvedSource, report: ReadReport, max_bad_share: float) -> Iterator[pl.DataFrame]:
    """Yield a source's NLI pairs: `premise`, `hypothesis`, `label` (Int8: 0 entailment, 1 neutral, 2 contradiction).

    Raises:
        SourceError: as for `read_source`, or the source has no labelled pairs, or a label is unknown.
    """
    for path, kind in _files(source):
        shape = _shape(source, path, kind)
        if shape.label is None or len(shape.texts) != 2:
            raise SourceError(
                f"{report.name} contains no labelled pairs, only the columns {', '.join(shape.names)}. Name "
                "two `columns` and the `label` of the source."
            )
        for frame in read_table(path, kind, shape, report, encoding=source.encoding):
            yield _labelled(frame, *shape.texts, shape.label, report)
    report.check(max_bad_share)


def _labelled(frame: pl.DataFrame, premise: str, hypothesis: str, label: str, report: ReadReport) -> pl.DataFrame:
    spelled = frame[label].cast(pl.String).str.strip_chars().str.to_lowercase().fill_null("")
    unlabelled = spelled.is_in(_UNLABELLED)
    codes = spelled.replace_strict(_CODES, default=None, return_dtype=pl.Int8)
    unknown = spelled.filter(codes.is_null() & ~unlabelled)
    if len(unknown):
        raise SourceError(
            f"{report.name}: {len(unknown):,} rows have a label such as {unknown[0]!r} in column {label!r}; "
            f"expected {', '.join(LABELS)} or 0, 1, 2, and '-' or -1 for none. Write these, or set "
            "or remove `label` of the source."
        )
    report.unlabelled += int(unlabelled.sum())
    return frame.select(premise=premise, hypothesis=hypothesis, label=codes).filter(~unlabelled)


def read_beside(
    source: ResolvedSource, column: str, report: ReadReport, max_bad_share: float
) -> Iterator[pl.DataFrame]:
    """Yield a source's sentences and another of its columns: `text`, `view`.

    Raises:
        SourceError: as for `read_source`, or the source has several columns of sentences.
    """
    for path, kind in _files(source):
        texts = _shape(source, path, kind).texts
        if len(texts) != 1 or column in texts:
            raise SourceError(
                f"{path} has sentences in {', '.join(map(repr, texts))}, expected one text column next to the views in "
                f"{column!r}. Name it {NAME_COLUMNS}."
            )
        for frame in read_table(path, kind, Columns((*texts, column)), report, encoding=source.encoding):
            yield frame.rename({texts[0]: "text", column: "view"})
    report.check(max_bad_share)


def is_nli(source: ResolvedSource) -> bool:
    """Return whether a source has labelled NLI pairs, by the columns of its first file.

    Raises:
        SourceError: a column that the source names is missing, or the columns have no known shape.
    """
    shape = _shape(source, *_files(source)[0])
    return shape.label is not None and len(shape.texts) == 2


def read_scored_pairs(source: ResolvedSource, report: ReadReport, low: float = 0, high: float = 5) -> pl.DataFrame:
    """Return a source's STS pairs in order: `subset` ("" if it has none), `sentence1`, `sentence2`, `score`.

    Pairs without a gold score are dropped, as in the tasks' own scorers, and counted as unlabelled.

    Raises:
        SourceError: a column is missing, a record cannot be read, or a score is not a number from `low` to `high`.
    """
    found = source_columns(source)
    shapes = (Columns(source.columns, ("score",)),) if len(source.columns) == 2 else SCORED_SHAPES
    shape = next((shape for shape in shapes if {*shape.names} <= set(found)), shapes[0])
    require(report.name, found, shape.names)
    subset = ("subset",) if "subset" in found else ()
    table = pl.concat(
        read_columns(source, Columns(shape.texts, (*shape.others, *subset)), report), how="diagonal_relaxed"
    ).rename(dict(zip(shape.names, ("sentence1", "sentence2", "score"), strict=True)))
    spelled = table["score"].cast(pl.String).str.strip_chars().fill_null("")
    score = spelled.cast(pl.Float64, strict=False)
    outside = (spelled != "") & ~score.is_between(low, high).fill_null(value=False)
    if outside.any():
        row = int(outside.arg_true()[0])
        raise SourceError(
            f"{report.name}: row {row + 1} has the score {spelled[row]!r}, expected a number from {low:g} to {high:g}. "
            "Correct it or declare the set's range."
        )
    report.unlabelled += int((spelled == "").sum())
    subsets = pl.col("subset").fill_null("") if subset else pl.lit("")
    return table.with_columns(subset=subsets, score=score).filter(spelled != "").select(STS.names()).cast(STS)


def read_columns(source: ResolvedSource, requested: Columns, report: ReadReport) -> Iterator[pl.DataFrame]:
    """Yield the given columns of a source, in order.

    Raises:
        SourceError: a file or column is missing, or a record cannot be read.
    """
    for path, kind in _files(source):
        yield from read_table(path, kind, requested, report, encoding=source.encoding)
    report.check(max_bad_share=0.0)


def source_columns(source: ResolvedSource) -> tuple[str, ...]:
    """Return the columns of a source's first file."""
    return columns_of(*_files(source)[0], encoding=source.encoding)


def local_files(source: ResolvedSource) -> tuple[str, ...]:
    """Return a source's files; the files of a Hub table are fetched first if necessary."""
    return source.files if source.hub is None else table_files(source.hub)


def check_beside(sources: Sequence[ResolvedSource], names: Sequence[str]) -> None:
    """Check that columns to copy or show beside the sentences exist and can be copied.

    Raises:
        SourceError: a file or column is missing, or a column has lists or other nested values, or bytes.
    """
    for source in sources if names else ():
        require(source.name, source_columns(source), names, "after --keep")
        path, kind = _files(source)[0]
        can = columns_of(path, kind, carried=True, encoding=source.encoding)
        if lost := [name for name in names if name not in can]:
            raise SourceError(
                f"{source.name}: column {lost[0]!r} after --keep has lists, other nested values or bytes, expected "
                "strings, numbers, dates or times. Write its values as strings, or remove the name."
            )


def check_columns(source: ResolvedSource) -> tuple[str, ...]:
    """Return the text columns that would be read, over all files of a source.

    Raises:
        SourceError: a file or column is missing, the columns have no known shape, or the first records no strings.
    """
    columns: dict[str, None] = {}
    for path, kind in _files(source):
        texts = _shape(source, path, kind).texts
        check_texts(path, kind, texts, encoding=source.encoding)
        columns |= dict.fromkeys(texts)
    return tuple(columns)


def _files(source: ResolvedSource) -> list[tuple[str, Format]]:
    """Return a source's files, each with its format."""
    return [(path, source.format or format_of(path)) for path in local_files(source)]


def _shape(source: ResolvedSource, path: str, kind: Format) -> Columns:
    """Return the columns to read: those that the source names, else a known shape, else the only prose column."""
    found = columns_of(path, kind, encoding=source.encoding)
    if source.columns:
        shape = Columns(source.columns, (source.label,) if source.label else ())
        require(path, found, shape.names)
        return shape
    if (known := known_shape(found)) is not None:
        return known
    sample = first_records(path, kind, encoding=source.encoding)
    require_header(path, kind, sample)
    prose = found if len(found) == 1 else tuple(name for name in sample.columns if is_prose(sample[name]))
    if len(prose) == 1:
        return Columns(prose)
    sets = "; ".join(", ".join(shape.names) for shape in SHAPES)
    unread = ", ".join(repr(name) for name in found if name not in sample.columns)
    write = f", or write the values of {unread} (lists, objects or of another type) as strings" if unread else ""
    raise SourceError(
        f"{path} has the columns {', '.join(map(repr, found))}, expected one of the known sets ({sets}) or exactly one "
        f"text column. Name the text columns {NAME_COLUMNS}{write}."
    )
