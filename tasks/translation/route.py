"""The way of a view: its sentences go through one translator after the other, range by range.

A range is of the ids under which the next translator's memory knows the sentences, so after each hop the sentences are
set aside anew: by what they have become, and after the last hop by the ids that they began with.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import polars as pl
from pydantic import BaseModel, ConfigDict, JsonValue

from models.runtime.partitions import Partitions, in_range, scratch_folder
from models.views.views import (
    ROUTE,
    begin_route,
    follow_hop,
    held_apart,
    judged_route,
    sentences_ahead,
)
from storage.artifacts.translation_memory import TranslationMemory
from tasks.translation.translate import MemoryLookup, translate_missing
from tasks.translation.translator import ResolvedTranslator

if TYPE_CHECKING:
    from models.runtime.partitions import Ranges
    from models.translation.filters import FilterConfig
    from tasks.stage.cached import StageContext


class Route(BaseModel):
    """The way of one view, with its translators found."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    method: str
    """Name of the view."""
    hops: tuple[ResolvedTranslator, ...]
    """Translators in the order in which the sentence passes them."""

    @property
    def returns(self) -> bool:
        """Whether the view is in the language of its sentence."""
        return self.hops[0].config.source_lang == self.hops[-1].config.target_lang


class RouteTranslation:
    """All sentences of a route's first language on their way, each in one place.

    Args:
        work: The stage that does it.
        route: Where to.
        filters: Limits beyond which a translation is given up.
        sentences: sentence_id, text, lang.
        bits: How many ranges, as `models.runtime.partitions` says.
        folder: An empty folder of the caller's, for as long as the journey is read.
    """

    def __init__(
        self, work: StageContext, route: Route, filters: FilterConfig, sentences: pl.LazyFrame, bits: int, folder: Path
    ) -> None:
        self._work = work
        self._route = route
        self._filters = filters
        self._bits = bits
        self._folder = folder
        speakers = sentences.filter(pl.col("lang") == route.hops[0].config.source_lang)
        self._sentences: int = speakers.select(pl.len()).collect().item()
        self._at: Ranges = lambda number: begin_route(in_range(speakers, number, bits))

    def judged(self, number: int) -> pl.LazyFrame:
        """The views of a range of sentences at the end of the way (`models.views.views.JUDGED`)."""
        views = judged_route(self._at(number), self._route.method)
        return held_apart(views, self._filters) if self._route.returns else views

    def go(self, following: int) -> list[dict[str, JsonValue]]:
        """Pass every translator, each of which first translates what its memory lacks.

        Args:
            following: Hops of other journeys of the same stage that come after this one.

        Returns:
            What each took.
        """
        hops = self._route.hops
        return [self._pass(number, hop, len(hops) - number + following) for number, hop in enumerate(hops, start=1)]

    def _pass(self, number: int, hop: ResolvedTranslator, following: int) -> dict[str, JsonValue]:
        by = "sentence_id" if number == len(self._route.hops) else "key"
        onward = Partitions(scratch_folder(self._folder, f"{number}"), ROUTE, by, bits=self._bits)
        here = self._at
        with TemporaryDirectory(dir=self._folder) as scratch:
            memory = TranslationMemory(self._work.store, hop.fingerprint)
            recall = MemoryLookup(memory, Path(scratch), self._bits, self._sentences)
            took = translate_missing(
                self._work.site, hop, lambda part: sentences_ahead(here(part)), recall, following=following
            )
            for part in range(1 << self._bits):
                moved = follow_hop(here(part), recall[part].lazy(), number, self._filters, hop.config.target_lang)
                onward.add(moved.collect())
        self._at = lambda part: onward[part].lazy()
        shutil.rmtree(self._folder / f"{number - 1}", ignore_errors=True)  # where they were before
        return {"method": self._route.method, **took}
