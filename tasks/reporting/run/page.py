"""The page of a run: the verdict, how the encoder was made and measured, how to reproduce it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from bsl.models.evaluation.published import AVERAGE, columns_of, rows_of
from bsl.models.evaluation.signature import PRINTED
from bsl.models.evaluation.sweep import MEAN
from bsl.models.runtime.partitions import bits_for, in_range
from bsl.models.views.views import view_examples
from bsl.storage.artifacts.lineage import lineage
from bsl.tasks.corpus.evaluation_sets import read_scored_set
from bsl.tasks.corpus.ingest import corpus_facts
from bsl.tasks.figures import IngestFigures, PairsFigures, TrainingFigures, ViewsFigures
from bsl.tasks.rendering.blocks import Charts, Facts, Folded, Page, Part, Prose, Table
from bsl.tasks.rendering.paper_tables import tables_of
from bsl.tasks.rendering.score_tables import all_scores, missing_sets, signatures
from bsl.tasks.reporting.evaluation import difference_part, draws_of
from bsl.tasks.reporting.run.tables import pair_tables, stage_table
from bsl.tasks.reporting.sections import settings_part, use_part
from bsl.tasks.views.augment import outcome_tables
from bsl.tasks.views.pairs import pairing_tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bsl.models.evaluation.published import PublishedRow
    from bsl.storage.artifacts.manifest import Manifest
    from bsl.storage.artifacts.refs import ViewsRef
    from bsl.storage.artifacts.store import Store
    from bsl.tasks.rendering.blocks import Block
    from bsl.tasks.rendering.charts import Mark
    from bsl.tasks.rendering.svg import Chart
    from bsl.tasks.reporting.run.content import Run

_EXAMPLES: Final = 5
_MOST_SETS: Final = 8  # maximum number of sets with charts of pairs; the tables have all sets
_PUBLISHED: Final = (
    "Published rows were not measured here; their authors used their own encoder, corpus and translator."
)


def run_page(run: Run) -> Page:
    """Return the page of a run."""
    manifests, this = lineage(run.store, run.artifacts.refs), run.context.draft.provenance.run
    published = [row for system in run.content.published for row in rows_of(system)]
    chart = headline(run, published)
    sentences = run.verdict.sentence if run.verdict else "Nothing was trained: the encoder is scored unchanged."
    parts = [
        Part("Run", [Facts(_summary(run, manifests)), *_training_facts(run)], html_only=True),
        Part("Pipeline", [stage_table(manifests, this, run.artifacts.vectors)], html_only=True),
        Part("Sentences and views", list(_views(run))),
        Part("Translations", list(_translations(run)), html_only=True),
        Part("Training", list(_curves(run))),
        Part("Scores", list(_scores(run, published))),
        difference_part(run.comparison, draws_of(run.store, run.artifacts.comparisons)),
        Part("Pairs", list(_pairs(run)), html_only=True),
        Part("Missing", [_missing(run.content.missing.reasons)]),
        Part("Signatures", [signatures(run.scores)]),
        *(use_part(f"checkpoint/{ref.key[:12]}") for ref in run.artifacts.checkpoints[-1:]),
        Part("Artifacts", [Facts({str(ref): ref.key for ref in (*run.artifacts.refs, *run.artifacts.folded)})]),
        settings_part(run.settings.model_dump_json(indent=1), html_only=True),
    ]
    return Page.of_result(run.content.title, [sentences], chart, parts, run.verdict.word if run.verdict else "")


def _summary(run: Run, manifests: Sequence[Manifest]) -> dict[str, str]:
    artifacts, settings, store = run.artifacts, run.settings, run.store
    sources = [source.dataset or "your own files" for source in settings.ingest.sources]
    this = run.context.draft.provenance.run
    new = [manifest for manifest in manifests if this and manifest.provenance.run == this]
    seconds, spent = (sum(manifest.duration_s for manifest in some) for some in (manifests, new))
    return {
        "corpus": ", ".join(sources),
        "sentences": f"{store.manifest(artifacts.corpus).rows:,}",
        **({"views": f"{store.manifest(artifacts.views).rows:,}"} if artifacts.views else {}),
        **({"pairs": ", ".join(f"{store.manifest(ref).rows:,}" for ref in artifacts.pairs)} if artifacts.pairs else {}),
        "original encoder": f"{settings.encoder.model}, {settings.encoder.pooling}",
        **({"objective": ", then ".join(run.trainings)} if settings.phases else {}),
        "artifacts": f"{len(new)} made, {len(manifests) - len(new)} cached",
        "time": f"{_duration(spent)}{'' if spent == seconds else f'; {_duration(seconds)} including cached artifacts'}",
    }


def _training_facts(run: Run) -> Iterator[Facts]:
    if not run.artifacts.checkpoints:
        return
    figures = run.store.manifest(run.artifacts.checkpoints[-1]).figures_as(TrainingFigures)
    devs = {"dev before training": figures.start_dev_spearman, "best dev": figures.best_dev_spearman}
    facts = {
        "steps": str(figures.steps),
        "selected step": str(figures.best_step),
        **{name: f"{100 * value:.2f}" for name, value in devs.items() if value is not None},
        "pairs per second": f"{figures.measured.pairs_per_s:,.0f}",
        "tokens per second": f"{figures.measured.tokens_per_s:,.0f}",
    }
    yield Facts(facts)


def _views(run: Run) -> Iterator[Block]:
    if run.settings.ingest.own_text is None:
        yield corpus_facts(run.store.manifest(run.artifacts.corpus).figures_as(IngestFigures).statistics)
    if run.artifacts.views is None:
        return
    if examples := _examples(run.store, run.artifacts.views):
        yield Table.of("Sentences and their views", examples)
        if trips := [name for name in examples[0] if name.startswith("bt-")]:
            yield Prose(f"{', '.join(trips)}: round trips, translated into that language and back.", note=True)
    yield from outcome_tables(run.store.manifest(run.artifacts.views).figures_as(ViewsFigures))
    for name, ref in zip(run.trainings, run.artifacts.pairs, strict=True):
        yield from pairing_tables(run.store.manifest(ref).figures_as(PairsFigures), name)


def _examples(store: Store, views: ViewsRef) -> list[dict[str, str]]:
    table, bits = store.scan(views), bits_for(store.manifest(views).rows)
    return view_examples([in_range(table, number, bits) for number in range(1 << bits)], _EXAMPLES).to_dicts()


def _translations(run: Run) -> Iterator[Block]:
    views = run.artifacts.views
    if views and (hops := run.store.manifest(views).figures_as(ViewsFigures).hops):
        yield Table.of("Sentences translated for this corpus; 0 if all were in the translation memory", hops)


def _curves(run: Run) -> Iterator[Block]:
    from bsl.tasks.rendering.charts import training_charts  # matplotlib

    checkpoints = zip(run.trainings, run.artifacts.checkpoints, strict=True)
    logs = {name: run.store.scan(ref, "training_log").collect() for name, ref in checkpoints}
    if logs:
        yield Charts(training_charts(logs))


def _scores(run: Run, published: Sequence[PublishedRow]) -> Iterator[Block]:
    yield from tables_of(run.scores, run.content.tables, published, run.settings.systems[-1])
    if published:
        yield Prose(_PUBLISHED, note=True)
    yield all_scores(run.scores)


def _pairs(run: Run) -> Iterator[Block]:
    """Yield charts and tables of the cosines of the first and the last system; nothing if none were compared."""
    from bsl.tasks.rendering.charts import cosine_charts  # matplotlib

    sets, systems = run.artifacts.sets, dict.fromkeys((run.settings.systems[0], run.settings.systems[-1]))
    tables = [run.store.scan(ref, "cosines") for ref in run.artifacts.comparisons]
    if not tables:
        return
    # All comparisons have the first system.
    compared = pl.concat(tables).filter(pl.col("model").is_in([*systems])).unique().sort("row").collect()
    for number, scored in enumerate(sets[:_MOST_SETS]):
        of_set = compared.filter(dataset=scored.dataset, split=scored.split)
        cosines = {name: rows["cosine"].to_numpy() for name in systems if (rows := of_set.filter(model=name)).height}
        if not cosines:
            continue
        pairs = read_scored_set(scored)
        yield Prose(scored.name, under=True)
        yield Charts(cosine_charts(str(number), pairs["score"].to_numpy(), cosines))
        yield Folded(f"Best and worst pairs of {scored.name}", list(pair_tables(scored.name, pairs, cosines)))
    if len(sets) > _MOST_SETS:
        yield Prose(f"Charts show the first {_MOST_SETS} of {len(sets)} sets.", note=True)


def _missing(reasons: Mapping[str, str]) -> Block:
    return missing_sets(reasons) if reasons else Prose("None: every requested set was scored.")


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes = seconds / 60
    return f"{minutes:.1f} min" if minutes < 100 else f"{minutes / 60:.1f} h"


def headline(run: Run, published: Sequence[PublishedRow]) -> Chart | None:
    """Return the chart, with published rows; None without figures."""
    from bsl.tasks.rendering.charts import figure_chart  # matplotlib

    if run.deciding is not None and run.deciding[0] == MEAN:
        return _mean_chart(run, published)
    row = _place(run)
    if row is None:
        return None
    roles = {model: role_of(model, run.settings.systems) for model in run.scores["model"].unique()}
    printed = _printed(published, row["dataset"], row["metric"], row["protocol"]) if row["split"] == "test" else ()
    return figure_chart(run.scores, row, roles, list(printed))


def role_of(model: str, systems: Sequence[str]) -> str:
    """Return a system's role: `before` training, `after` training or a transform, else `baseline`."""
    trained = any(model.startswith(system) for system in systems[1:])
    return (
        "after" if trained or "+" in model.removeprefix(systems[0]) else "before" if model == systems[0] else "baseline"
    )


def _place(run: Run) -> dict[str, Any] | None:
    """Return the figure to draw: that of the verdict, else the first on a test set; None without figures."""
    scores = run.scores.filter(PRINTED)
    if run.deciding is not None:
        dataset, split = run.deciding
        scores = scores.filter(dataset=dataset, split=split, metric="spearman", protocol="all")
    tests = scores.filter(split="test")
    candidates = tests if tests.height else scores
    return candidates.row(0, named=True) if candidates.height else None


def _mean_chart(run: Run, published: Sequence[PublishedRow]) -> Chart:
    """Return each system's mean over the test sets; only compared systems have an interval."""
    from bsl.tasks.rendering.charts import mark_of, score_chart  # matplotlib

    tests = [scored.dataset for scored in run.artifacts.sets if scored.split == "test"]
    scores = run.scores.filter(
        pl.col("dataset").is_in(tests), split="test", metric="spearman", protocol="all", subset="all"
    )
    means = pl.concat([run.store.scan(ref, "compared").filter(dataset=MEAN) for ref in run.artifacts.comparisons])
    compared = {row["model"]: row for row in means.collect().iter_rows(named=True)}
    marks = []
    for (name,), rows in scores.group_by("model", maintain_order=True):
        row = compared.get(name, {})
        if rows.height == len(tests):
            value = row.get("value", float(rows["value"].to_numpy().mean()))
            marks.append(
                mark_of(name, role_of(name, run.settings.systems), value, row.get("ci_low"), row.get("ci_high"))
            )
    printed = [
        mark
        for row in published
        if {*columns_of(row.suite)} - {AVERAGE} == {*tests}
        for mark in _printed([row], AVERAGE, "spearman", "all")
    ]
    return score_chart([*marks, *printed], f"Spearman × 100, mean of {len(tests)} test sets, with 95 % interval")


def _printed(rows: Sequence[PublishedRow], column: str, metric: str, protocol: str) -> Iterator[Mark]:
    from bsl.tasks.rendering.charts import Mark  # matplotlib

    names = set()
    for row in rows:
        if (row.metric, row.protocol) == (metric, protocol) and column in row.values and row.system not in names:
            names.add(row.system)
            yield Mark(f"{row.system} (published)", "published", row.values[column])
