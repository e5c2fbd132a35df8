"""A corpus to its views: every method's views made or found made, every loss counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from pydantic import BaseModel, ConfigDict, JsonValue

from models.augmentation.views import (
    JUDGED,
    begin_route,
    follow_hop,
    held_apart,
    judged_route,
    judged_views,
    kept_views,
    ordered_views,
    original_view,
    sentences_ahead,
    view_samples,
)
from models.translation.filters import FilterConfig, drop_table
from storage.memory import TranslationMemory
from storage.refs import CorpusRef, NliRef, ViewsRef
from tasks.rewrite import rewritten
from tasks.stage.cached import Work, stage
from tasks.stage.show import show_table
from tasks.translate import Hop, find_hop, translate_missing

if TYPE_CHECKING:
    from models.augmentation.config import AugmentConfig
    from tasks.site import Site

SAMPLE_ROWS = 8


class Route(BaseModel):
    """The way of one view, with its translators found."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    method: str
    """Name of the view."""
    hops: tuple[Hop, ...]
    """Translators in the order in which the sentence passes them."""

    @property
    def returns(self) -> bool:
        """Whether the view is in the language of its sentence."""
        return self.hops[0].config.source_lang == self.hops[-1].config.target_lang


def augment(site: Site, corpus: CorpusRef, config: AugmentConfig, nli: NliRef | None = None) -> ViewsRef:
    """Make the views of a corpus, or find them made; the models' content, not their place, decides which.

    Args:
        site: Store and device.
        corpus: The sentences.
        config: Which views.
        nli: Labelled pairs, which view `entail` needs.
    """
    routes = tuple(
        Route(method=v.method, hops=tuple(find_hop(site, hop) for hop in v.hops)) for v in config.translations
    )
    parts = rewritten(site, corpus, config, nli)
    return make_views(site, corpus, routes, parts, config.filters, original=config.original)


@stage(
    ref=ViewsRef,
    version=2,
)
def make_views(
    work: Work,
    corpus: CorpusRef,
    routes: tuple[Route, ...],
    parts: tuple[ViewsRef, ...],
    filters: FilterConfig,
    *,
    original: bool,
) -> None:
    """Translate what no memory holds yet, put all methods' views together, and keep what is fit."""
    sentences = work.store.scan(corpus)
    costs: list[JsonValue] = []
    judged = pl.concat(
        [
            pl.LazyFrame(schema=JUDGED),
            *(_travelled(work, sentences, route, filters, costs) for route in routes),
            *(held_apart(judged_views(sentences, work.store.scan(part)), filters) for part in parts),
        ]
    )
    originals = [original_view(sentences)] if original else []
    table = ordered_views([*originals, kept_views(judged)]).collect()
    work.draft.write(table)
    drops = drop_table(judged)
    outcomes: list[JsonValue] = [dict(row) for row in drops.select("method", "outcome", "n").iter_rows(named=True)]
    work.draft.note({"hops": costs, "outcomes": outcomes})
    _show(table, drops)


def _travelled(
    work: Work, sentences: pl.LazyFrame, route: Route, filters: FilterConfig, costs: list[JsonValue]
) -> pl.LazyFrame:
    """The judged views of a route: one row per sentence of its first language."""
    position = begin_route(sentences.filter(pl.col("lang") == route.hops[0].config.source_lang))
    for number, hop in enumerate(route.hops, start=1):
        ahead = sentences_ahead(position)
        costs.append({"method": route.method, **translate_missing(work.site, hop, ahead)})
        found = TranslationMemory(work.store, hop.fingerprint).lookup(ahead)
        position = follow_hop(position, found, number, filters, hop.config.target_lang).collect().lazy()
    judged = judged_route(position, route.method)
    return held_apart(judged, filters) if route.returns else judged


def _show(views: pl.DataFrame, drops: pl.DataFrame) -> None:
    show_table("view-drops", drops.drop("source", "text").to_dicts(), "What became of each sentence on its way")
    # A view a row: side by side, four would leave the page.
    samples = view_samples(views.lazy(), SAMPLE_ROWS).to_dicts()
    rows = [{"view": method, "sentence": text} for sample in samples for method, text in sample.items()]
    show_table("view-samples", rows, "A random sample, view below view")
    lost = drops.filter(~pl.col("outcome").str.starts_with("kept")).explode("source", "text")
    examples = lost.select("method", "outcome", "source", became="text").to_dicts()
    show_table("view-examples", examples, "Examples of what was dropped")
