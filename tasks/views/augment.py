"""Make the views of a corpus by all methods, filter them, and count the dropped ones."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import polars as pl

from bsl.models.runtime.partitions import bits_for, in_range
from bsl.models.translation.filters import AnyFilter, count_drops, drop_table
from bsl.models.views.views import (
    JUDGED,
    filter_finished,
    judged_views,
    kept_views,
    view_samples,
)
from bsl.storage.artifacts.refs import ArtifactRef, CorpusRef, ViewsRef
from bsl.tasks.figures import Outcome, ViewsFigures
from bsl.tasks.rendering.blocks import Table
from bsl.tasks.stage.cached import StageContext, stage
from bsl.tasks.stage.progress import is_planning, planning
from bsl.tasks.stage.ui import show
from bsl.tasks.translation.route import Route, RouteTranslation
from bsl.tasks.translation.translator import find_translator
from bsl.tasks.views.methods import check_materials, rewritten

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import JsonValue

    from bsl.models.views.config import AugmentConfig
    from bsl.tasks.stage.run_context import RunContext

SAMPLE_ROWS = 8


def find_routes(site: RunContext, config: AugmentConfig) -> tuple[Route, ...]:
    """Find the translators of all views, and check that the models and lexicons of the other views exist.

    Raises:
        SourceError, AssetError: A model or WordNet is not available.
        TranslationError: This machine cannot run a translator as configured.
    """
    for view in config.rewritings:
        check_materials(site, view)
    return tuple(
        Route(method=view.method, hops=tuple(find_translator(site, hop) for hop in view.hops)) for view in config.routes
    )


def augment(
    site: RunContext,
    corpus: CorpusRef,
    config: AugmentConfig,
    nli: ArtifactRef | None = None,
    given: tuple[ViewsRef, ...] = (),
    routes: tuple[Route, ...] | None = None,
    before_models: Callable[[], None] | None = None,
) -> ViewsRef:
    """Make the views of a corpus, or reuse cached ones; models are identified by content, not by path.

    `routes` is the result of `find_routes`, if the caller looked for the models before earlier stages.
    `before_models` is called if translators or masked language models will make views, which may take hours.
    """
    routes = find_routes(site, config) if routes is None else routes
    has_models = bool(routes) or any(view.models for view in config.rewritings)
    if before_models and has_models and not is_planning():
        with planning():
            views = augment(site, corpus, config, nli, given, routes)
        if site.open_store().defect(views):
            before_models()
    parts = (*(rewritten(site, corpus, nli, view) for view in config.rewritings), *given)
    return make_views(site, corpus, routes, parts, config.filters, original=config.original)


@stage(ref=ViewsRef, version=3)
def make_views(
    context: StageContext,
    corpus: CorpusRef,
    routes: tuple[Route, ...],
    parts: tuple[ViewsRef, ...],
    filters: tuple[AnyFilter, ...],
    *,
    original: bool,
) -> None:
    """Translate sentences that no translation memory has, combine the views of all methods, and filter them."""
    sentences, bits = context.store.scan(corpus), bits_for(context.store.manifest(corpus).rows)
    rewritings = [context.store.scan(part) for part in parts]
    costs: list[dict[str, JsonValue]] = []
    counts: list[pl.DataFrame] = []
    samples: list[pl.DataFrame] = []
    with context.store.workspace() as scratch:
        trips = [
            RouteTranslation(context, route, filters, sentences, bits, scratch / str(number))
            for number, route in enumerate(routes)
        ]
        for number, trip in enumerate(trips):
            costs += trip.translate_all(hops_after=sum(len(later.hops) for later in routes[number + 1 :]))

        def of_range(number: int) -> pl.DataFrame:
            here = in_range(sentences, number, bits)
            judged = [
                *(trip.judged(number) for trip in trips),
                *(filter_finished(judged_views(here, in_range(table, number, bits)), filters) for table in rewritings),
            ]
            rows = pl.concat([pl.LazyFrame(schema=JUDGED), *judged]).collect().lazy()
            counts.append(count_drops(rows))
            views = kept_views(rows, here if original else None).collect()
            samples.append(view_samples(views, SAMPLE_ROWS))
            return views

        context.draft.write_all(map(of_range, range(1 << bits)))
    drops = drop_table(counts)
    outcomes = [Outcome(**row) for row in drops.select("method", "outcome", "n").iter_rows(named=True)]
    figures = ViewsFigures(hops=costs, outcomes=outcomes)
    context.draft.note(figures)
    # One view per row, as four columns would exceed the page.
    rows = [{"view": view, "sentence": text} for row in samples[0].to_dicts() for view, text in row.items() if text]
    dropped = drops.filter(~pl.col("outcome").str.starts_with("kept")).explode("source", "text")
    examples = dropped.select("method", "outcome", "source", result="text").to_dicts()
    show(
        *outcome_tables(figures),
        Table.of("A random sample of sentences and their views", rows),
        Table.of("Examples of dropped sentences", examples),
    )


def outcome_tables(figures: ViewsFigures) -> list[Table]:
    """Return how many sentences got a view or were dropped, by method and reason, with their share of the method."""
    totals = Counter[str]()
    for row in figures.outcomes:
        totals[row.method] += row.n
    rows = [
        {
            "method": row.method,
            "outcome": row.outcome.replace("_", " "),
            "n": row.n,
            "share": f"{100 * row.n / totals[row.method]:.2f} %",
        }
        for row in figures.outcomes
    ]
    return [Table.of("Dropped sentences", rows)] if rows else []
