"""Translate sentences through a route of several translators (hops), range by range.

Ranges are ranges of the ids by which the next translator's memory is looked up. After each hop the sentences are
partitioned again: by the ids of their translations, and after the last hop by their original ids.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import polars as pl

from bsl.models.errors import TranslationError
from bsl.models.runtime.partitions import Partitions, in_range
from bsl.models.views.views import (
    ROUTE,
    begin_route,
    filter_finished,
    follow_hop,
    judged_route,
    sentences_ahead,
)
from bsl.storage.record import Record
from bsl.tasks.translation.translate import MemoryLookup, translate_missing
from bsl.tasks.translation.translator import ResolvedTranslator

if TYPE_CHECKING:
    from pydantic import JsonValue

    from bsl.models.runtime.partitions import Ranges
    from bsl.models.translation.filters import AnyFilter
    from bsl.tasks.stage.cached import StageContext


class Route(Record):
    """The translators of a view, in the order of their use."""

    method: str
    hops: tuple[ResolvedTranslator, ...]

    @property
    def returns(self) -> bool:
        """Whether the route ends in its source language (a round trip)."""
        return self.hops[0].config.source_lang == self.hops[-1].config.target_lang


class RouteTranslation:
    """Translation of all sentences (sentence_id, text, lang) in a route's source language.

    `bits` is the logarithm of the number of ranges, see `bsl.models.runtime.partitions`. The folder is an empty one of
    the caller, which must exist until the views are read.

    Raises:
        TranslationError: No sentence is in the route's source language.
    """

    def __init__(
        self,
        context: StageContext,
        route: Route,
        filters: tuple[AnyFilter, ...],
        sentences: pl.LazyFrame,
        bits: int,
        folder: Path,
    ) -> None:
        self._context = context
        self._route = route
        self._filters = filters
        self._bits = bits
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        lang = route.hops[0].config.source_lang
        sources = sentences.filter(pl.col("lang") == lang)
        self._sentences: int = sources.select(pl.len()).collect().item()
        if not self._sentences:
            found = sentences.select(pl.col("lang").unique().sort()).collect(engine="streaming").to_series()
            raise TranslationError(
                f"view {route.method}: no sentence of the corpus is in {lang} (found {', '.join(found)}). Set `lang` "
                "of the sources in ingest.sources, or use translators from the language of the sentences."
            )
        self._at: Ranges = lambda number: begin_route(in_range(sources, number, bits))

    def judged(self, number: int) -> pl.LazyFrame:
        """Return the views of a range of sentences after the last hop; columns are `bsl.models.views.views.JUDGED`."""
        views = judged_route(self._at(number), self._route.method)
        return filter_finished(views, self._filters) if self._route.returns else views

    def translate_all(self, hops_after: int) -> list[dict[str, JsonValue]]:
        """Translate the sentences through all hops, adding to each memory what is missing; return the cost of each hop.

        `hops_after` is the number of later hops, on other routes of the same stage.
        """
        hops = self._route.hops
        return [self._pass(number, hop, len(hops) - number + hops_after) for number, hop in enumerate(hops, start=1)]

    def _pass(self, number: int, hop: ResolvedTranslator, hops_after: int) -> dict[str, JsonValue]:
        by = "sentence_id" if number == len(self._route.hops) else "key"
        onward = Partitions(self._folder / str(number), ROUTE, by, bits=self._bits)
        here = self._at
        with TemporaryDirectory(dir=self._folder) as scratch:
            recall = MemoryLookup(self._context.store, hop.fingerprint, Path(scratch), self._bits, self._sentences)
            cost = translate_missing(
                self._context.site, hop, lambda part: sentences_ahead(here(part)), recall, following=hops_after
            )
            for part in range(1 << self._bits):
                moved = follow_hop(here(part), recall[part].lazy(), number, self._filters, hop.config.target_lang)
                onward.add(moved.collect())
        self._at = lambda part: onward[part].lazy()
        shutil.rmtree(self._folder / f"{number - 1}", ignore_errors=True)  # partitions of the previous hop
        return {"method": self._route.method, **cost}
