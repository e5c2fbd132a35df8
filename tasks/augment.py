"""A corpus to its views: every sentence through its hops, the memory filled on the way, every loss counted."""

import polars as pl
from pydantic import BaseModel, ConfigDict, JsonValue

from models.augmentation.config import AugmentConfig
from models.augmentation.views import (
    begin_route,
    finish_route,
    follow_hop,
    judged_routes,
    ordered_views,
    original_view,
    sentences_ahead,
    view_samples,
)
from models.translation.filters import FilterConfig, drop_table
from storage.memory import TranslationMemory
from storage.refs import CorpusRef, ViewsRef
from tasks.cached import Work, stage
from tasks.show import show_table
from tasks.site import Site
from tasks.translate import Hop, find_hop, translate_missing

SAMPLE_ROWS = 20


class Route(BaseModel):
    """The way of one view, with its translators found."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    method: str
    """Name of the view."""
    hops: tuple[Hop, ...]
    """Translators in the order in which the sentence passes them."""


def augment(site: Site, corpus: CorpusRef, config: AugmentConfig) -> ViewsRef:
    """Make the views of a corpus, or find them made; the translators' content, not their place, decides which."""
    routes = tuple(Route(method=v.method, hops=tuple(find_hop(site, hop) for hop in v.hops)) for v in config.views)
    return make_views(site, corpus, routes, config.filters, original=config.original)


@stage(
    ref=ViewsRef,
    version=1,
)
def make_views(
    work: Work, corpus: CorpusRef, routes: tuple[Route, ...], filters: FilterConfig, *, original: bool
) -> None:
    """Translate what no memory holds yet, follow every sentence through its hops, and keep what is fit."""
    sentences = work.store.scan(corpus)
    costs: list[JsonValue] = []
    followed = [(route.method, _followed(work, sentences, route, filters, costs)) for route in routes]
    views = [finish_route(end, method) for method, end in followed]
    table = ordered_views([original_view(sentences), *views] if original else views).collect()
    work.draft.write(table)
    drops = drop_table(judged_routes(followed))
    outcomes: list[JsonValue] = [dict(row) for row in drops.select("method", "outcome", "n").iter_rows(named=True)]
    work.draft.note({"hops": costs, "outcomes": outcomes})
    _show(table, drops)


def _followed(
    work: Work, sentences: pl.LazyFrame, route: Route, filters: FilterConfig, costs: list[JsonValue]
) -> pl.LazyFrame:
    """The route's end: one row per sentence of its first language, kept or given up."""
    position = begin_route(sentences.filter(pl.col("lang") == route.hops[0].config.source_lang))
    for number, hop in enumerate(route.hops, start=1):
        ahead = sentences_ahead(position)
        costs.append({"method": route.method, **translate_missing(work.site, hop, ahead)})
        found = TranslationMemory(work.store, hop.fingerprint).lookup(ahead)
        position = follow_hop(position, found, number, filters).collect().lazy()
    return position


def _show(views: pl.DataFrame, drops: pl.DataFrame) -> None:
    readable = drops.with_columns(pl.col("source", "text").list.join(" · "))
    show_table("view-drops", readable.to_dicts(), "What became of each sentence on its way, with examples")
    show_table("view-samples", view_samples(views.lazy(), SAMPLE_ROWS).to_dicts(), "A random sample, view beside view")
