"""Views that the sources bring in a column beside their sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from models.views.config import GivenView
from models.views.views import given_views
from storage.artifacts.refs import CorpusRef, ViewsRef
from storage.errors import SourceError
from storage.readers.read_report import ReadReport
from storage.sources.read import read_beside, source_columns
from storage.sources.sources import ResolvedSource
from tasks.stage.cached import Work, stage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

    from models.views.config import AugmentConfig
    from tasks.stage.run_context import RunContext


def views_of_sources(
    site: RunContext,
    sources: tuple[ResolvedSource, ...],
    corpus: CorpusRef,
    config: AugmentConfig,
    max_bad_share: float,
) -> tuple[ViewsRef, ...]:
    """Make the views that a configuration takes from its sources, or find them made; a method each."""
    return tuple(given(site, sources, corpus, view, max_bad_share) for view in config.given)


@stage(ref=ViewsRef, version=1)
def given(
    work: Work, sources: tuple[ResolvedSource, ...], corpus: CorpusRef, view: GivenView, max_bad_share: float
) -> None:
    """Read one column of those sources that have it as a view of their sentences.

    Raises:
        SourceError: no source has the column, or one has several columns of text.
    """
    having = [source for source in sources if view.column in source_columns(source)]
    if not having:
        names = ", ".join(source.name for source in sources)
        raise SourceError(
            f"none of the sources {names} has a column {view.column!r}, which augment.given names; name one "
            "that is there"
        )
    table = given_views(_frames(having, view.column, max_bad_share), work.store.scan(corpus), view.method)
    work.draft.write(table)
    work.draft.note({"views": table.height})


def _frames(sources: Sequence[ResolvedSource], column: str, max_bad_share: float) -> Iterator[pl.DataFrame]:
    for source in sources:
        yield from read_beside(source, column, ReadReport(source.name), max_bad_share)
