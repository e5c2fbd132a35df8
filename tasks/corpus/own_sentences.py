"""Read the user's files as ordered sentences; without Prefect, so that commands can refuse a small text at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from bsl.models.corpus.passages import documents, hold_out, passages, without_copies
from bsl.models.errors import EmptyCorpusError
from bsl.storage.readers.read_report import ReadReport
from bsl.storage.sources.own_text import TextSource, records

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bsl.models.corpus.passages import HoldOutConfig, LeftOut
    from bsl.models.runtime.progress import OnProgress

_MAX_BAD_SHARE: Final = 0.01  # maximum share of unreadable records in a source


def sentences_of(
    sources: tuple[TextSource, ...], config: HoldOutConfig, left_out: LeftOut, on_progress: OnProgress | None = None
) -> pl.DataFrame:
    """Read the sentences of files in order; `left_out` counts the sentences that are dropped.

    Raises:
        SourceError: too many records of a file cannot be read.
    """
    return without_copies(list(_each_file(sources, config, left_out, on_progress)), left_out)


def _each_file(
    sources: tuple[TextSource, ...], config: HoldOutConfig, left_out: LeftOut, on_progress: OnProgress | None
) -> Iterator[pl.DataFrame]:
    first, done = 0, 0
    total = sum(len(source.files) for source in sources)
    for source in sources:
        report = ReadReport(source.name)
        for table in records(source, report):
            numbered = documents(table, lines=source.ordered, first=first)
            last = numbered.select(pl.col("document").max()).item()
            first = first if last is None else last + 1
            named = numbered.with_columns(source=pl.lit(source.name), lang=pl.lit(source.lang))
            yield passages(named, config, left_out)
            done += 1
            if on_progress is not None:
                on_progress(done, total, source.name)
        report.check(_MAX_BAD_SHARE)
        left_out.unreadable += report.rejected
        left_out.first_unreadable = left_out.first_unreadable or report.first


def parts_of(
    sources: tuple[TextSource, ...], config: HoldOutConfig, left_out: LeftOut, on_progress: OnProgress | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return all sentences of files, and their parts for training and evaluation, otherwise as `sentences_of`.

    Raises:
        EmptyCorpusError: the text columns are empty, or a part has no sentences.
    """
    table = sentences_of(sources, config, left_out, on_progress)
    if table.is_empty() and not left_out.short + left_out.long:
        columns = ", ".join(f"{text!r} of {source.name}" for source in sources for text in source.texts)
        raise EmptyCorpusError(f"the text columns are empty: {columns}. Name the columns with text (--columns).")
    return table, hold_out(table, config, left_out)
