"""Somebody's own text as sentences in their documents, some of these held out from every training."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import polars as pl

from models.text.documents import documents
from models.text.passages import HoldOutConfig, hold_out
from models.text.passages import passages as sentences_of_documents
from storage.readers.report import ReadReport
from storage.refs import PassagesRef
from storage.texts import TextSource, records
from tasks.stage.cached import Work, stage
from tasks.stage.show import show_table

if TYPE_CHECKING:
    from collections.abc import Iterator

logger = logging.getLogger(__name__)


@stage(ref=PassagesRef, version=1)
def passages(work: Work, sources: tuple[TextSource, ...], config: HoldOutConfig) -> None:
    """Read texts in their order, cut them into sentences, and hold whole documents out.

    Raises:
        SourceError: a file cannot be read.
        EmptyCorpusError: there is too little text to hold any out.
    """
    table = hold_out(sentences_of_documents(pl.concat(list(_documents(sources))), config), config)
    work.draft.write(table)
    counts = table.group_by("part").agg(sentences=pl.len(), documents=pl.col("document").n_unique()).sort("part")
    work.draft.note({str(part): {"sentences": n, "documents": m} for part, n, m in counts.iter_rows()})
    show_table("passages", counts.to_dicts(), "What is learnt, and what is held out in whole documents")


def _documents(sources: tuple[TextSource, ...]) -> Iterator[pl.DataFrame]:
    """Records with the numbers of their documents, over all files of all sources."""
    first = 0
    for source in sources:
        report = ReadReport(source.name)
        for frame in records(source, report):
            numbered = documents(frame, lines=source.format == "txt", first=first)
            if numbered.height:
                first = int(numbered["document"].max()) + 1  # type: ignore[arg-type]  # a column of numbers
            yield numbered.with_columns(source=pl.lit(source.name), lang=pl.lit(source.lang))
        logger.info("%s: %d records, %d unreadable", source.name, report.records, report.rejected)
