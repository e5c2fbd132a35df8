"""Compare systems over seeds, on the same bootstrap draws of sets or of the user's text: a table and a page."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import polars as pl

from models.evaluation.config import BootstrapConfig
from models.evaluation.reproduction import estimate_over_seeds
from models.evaluation.signature import PLACE
from models.evaluation.sweep import MEAN, SweepResult, mean_of, smallest_p
from storage.artifacts.refs import SweepRef
from storage.artifacts.schemas import SWEEP
from tasks.embedding.vectors import open_vectors
from tasks.evaluation.kinds import draws_of_sets
from tasks.rendering.numbers import counted
from tasks.reporting.provenance import RunCommand
from tasks.reporting.publish import publish
from tasks.reporting.sections import reproduce_part, settings_part, text_part
from tasks.reporting.sweep.advice import TEXT, Choice, advice
from tasks.reporting.sweep.costs import cost_table, faults_of
from tasks.reporting.sweep.inputs import OwnTextComparison, SweepSettings
from tasks.reporting.sweep.page import SweepContent, finding, shown_set, sweep_page
from tasks.reporting.sweep.runs import result_scores, run_parts
from tasks.reporting.sweep.system import SweepSystem
from tasks.stage.cached import StageContext, stage
from tasks.stage.device import limit_threads

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pydantic import JsonValue

    from models.evaluation.sweep import SetDraws
    from tasks.embedding.vectors import Vectors
    from tasks.rendering.blocks import Part


@stage(ref=SweepRef, version=8)
def compare_systems(
    context: StageContext, systems: tuple[SweepSystem, ...], settings: SweepSettings, command: RunCommand
) -> None:
    """Publish figures over seeds, differences to references, and a page; for own text also the best system and costs.

    Args:
        context: the stage's context.
        systems: systems with their artifacts; for own text, the unchanged encoder comes first.
        settings: sets, references and content.
        command: the command that repeats the sweep.

    Raises:
        EvaluationError: vectors cannot be scored on a set.
    """
    limit_threads(context.site)
    own_text = settings.own_text
    vectors = {
        system.label: [open_vectors(context.store, ref) for ref in system.embeddings]
        for system in systems
        if system.embeddings
    }
    resamples = settings.resamples(len(vectors) - 1)
    drawn = _draws(settings, list(vectors.values()), resamples)
    result = SweepResult(tuple(vectors), tuple(drawn), settings.config.seed)
    references = tuple(label for label in settings.references if label in vectors)
    figures = pl.DataFrame([*result.rows(references), *_other_figures(context, systems, settings.others)], schema=SWEEP)
    table = pl.concat([figures, _without(figures, [one.label for one in systems if one.label not in vectors])])
    choice = _choice(context, systems, result, own_text) if own_text is not None else None
    shown = TEXT if own_text is not None else shown_set(table, settings.shown)
    notes = [*settings.notes, *(note for system in systems for note in system.notes)]
    if drawn and len(vectors) > 1:
        notes.append(_draws_note(resamples, len(vectors) - 1))
    faults = faults_of(context.store, systems)
    content = SweepContent(settings.title, table, systems, settings.axis, shown, faults, notes, choice)
    sentences = advice(table, choice) if choice is not None else [finding(table, shown)]
    context.draft.write(table)
    if choice is not None:
        context.draft.write(choice.costs, "costs")
    findings: list[JsonValue] = [*filter(None, sentences)]
    context.draft.note({"findings": findings, "shown": shown, "faults": {**faults}, "notes": [*notes]})
    own_parts = [
        *_run_parts(context, [system.label for system in systems], settings),
        *_own_parts(context, settings, command),
    ]
    publish(context, sweep_page(content, sentences, own_parts))


def _draws(settings: SweepSettings, vectors: Sequence[Sequence[Vectors]], resamples: int) -> list[SetDraws]:
    """Return the draws of every set, and their mean: one over the deciding sets for own text, else one per metric."""
    compared = draws_of_sets(
        settings.compared, vectors, BootstrapConfig(resamples=resamples, seed=settings.config.seed)
    )
    compared = [replace(found, group="") if found.name in settings.aside else found for found in compared]
    if settings.own_text is not None:
        return [mean_of(compared, TEXT), *compared]
    deciding = [found for found in compared if found.group]
    by_metric = {
        metric: [found for found in deciding if found.metric == metric]
        for metric in dict.fromkeys(found.metric for found in deciding)
    }
    return [*compared, *(mean_of(sets, MEAN, metric) for metric, sets in by_metric.items() if len(sets) > 1)]


def _choice(
    context: StageContext, systems: Sequence[SweepSystem], result: SweepResult, own_text: OwnTextComparison
) -> Choice:
    """Return the best system on the user's text, and the cost of each system."""
    ranked = result.ranking(TEXT, [check.name for check in own_text.checks], own_text.may_forget)
    return Choice(ranked, cost_table(context.store, systems, own_text.corpus, ranked), context.store.url)


def _run_parts(context: StageContext, names: Sequence[str], settings: SweepSettings) -> list[Part]:
    """Write the scores of finished runs and return the sections on them; nothing if the systems are not such runs."""
    if not settings.runs:
        return []
    scores = result_scores(context.store, names, settings.runs)
    context.draft.write(scores, "scores")
    return run_parts(context.store, names, settings.runs, scores)


def _own_parts(context: StageContext, settings: SweepSettings, command: RunCommand) -> list[Part]:
    """Return the sections on the user's text, the settings, and how to reproduce the page."""
    parts = []
    if settings.own_text is not None:
        text = settings.own_text.held_out
        views = {"Round trips of held-out sentences": text.trips} if text.trips else {}
        labels = text.labels.summary if text.labels else ""
        parts = [text_part(context.store, text.passages, views, settings.own_text.sources, labels)]
    return [*parts, *([settings_part(settings.settings)] if settings.settings else []), reproduce_part(command)]


def _draws_note(draws: int, comparisons: int) -> str:
    return (
        f"{draws:,} draws and {counted(comparisons, 'comparison')}: the smallest p that a "
        f"difference can reach here is {smallest_p(draws, comparisons):.4f}."
    )


def _other_figures(
    context: StageContext, systems: Sequence[SweepSystem], others: Mapping[str, tuple[str, ...]]
) -> Iterator[dict[str, object]]:
    """Yield figures over seeds of sets without draws, such as accuracies; they are not compared."""
    headlines = [pl.col("dataset").eq(name) & pl.col("metric").is_in(metrics) for name, metrics in others.items()]
    for system in systems:
        if not system.scores:
            continue
        rows = pl.concat([context.store.scan(ref).collect() for ref in system.scores])
        figures = rows.filter(pl.any_horizontal(*headlines, False), pl.col("subset").is_in(["all", "mean"]))
        for (dataset, split, metric, protocol), seeds in figures.group_by(PLACE, maintain_order=True):
            ends = [pl.col(end).fill_null(pl.col("value")) for end in ("ci_low", "ci_high")]
            figure = asdict(estimate_over_seeds([seeds.select("value", *ends).rows()]))
            if seeds["ci_low"].null_count() and seeds.height == 1:
                figure |= {"ci_low": None, "ci_high": None}
            place = {"dataset": f"{dataset} {split}", "metric": metric, "protocol": protocol}
            yield {"label": system.label, **place, **figure}


def _without(figures: pl.DataFrame, labels: list[str]) -> pl.DataFrame:
    """Return empty rows for systems without figures, one for each figure that other systems have."""
    places = figures.select("dataset", "metric", "protocol", "reference", "decides").unique(maintain_order=True)
    rows = [{"label": label, **place, "seeds": 0} for label in labels for place in places.rows(named=True)]
    return pl.DataFrame(rows, schema=SWEEP)
