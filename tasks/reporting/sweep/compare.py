"""Compare systems over seeds, on the same bootstrap draws of each set: a table and a page."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from bsl.models.evaluation.config import BootstrapConfig
from bsl.models.evaluation.reproduction import estimate_over_seeds
from bsl.models.evaluation.signature import PLACE, with_sign
from bsl.models.evaluation.sweep import MEAN, SweepResult, enough_draws, mean_of, smallest_p
from bsl.storage.artifacts.refs import ArtifactRef
from bsl.storage.artifacts.schemas import SWEEP
from bsl.tasks.embedding.vectors import open_vectors
from bsl.tasks.evaluation.kind import DRAWS_VERSION
from bsl.tasks.evaluation.kinds import draws_of_sets, have_mean, with_offsets
from bsl.tasks.figures import ResultFigures, SweepFigures
from bsl.tasks.rendering.blocks import Part, Prose, Table
from bsl.tasks.rendering.numbers import counted, p_value, spread
from bsl.tasks.reporting.provenance import RunCommand
from bsl.tasks.reporting.publish import publish
from bsl.tasks.reporting.sections import text_part
from bsl.tasks.reporting.sweep.inputs import SweepSettings
from bsl.tasks.reporting.sweep.page import finding, shown_rows, shown_set, sweep_chart, sweep_page
from bsl.tasks.reporting.sweep.runs import result_scores, run_parts
from bsl.tasks.reporting.sweep.system import SweepSystem
from bsl.tasks.stage.cached import StageContext, stage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bsl.models.evaluation.sweep import Choice, SetDraws
    from bsl.tasks.embedding.vectors import Vectors


@stage(ref=ArtifactRef, kind="sweep", version=16 + DRAWS_VERSION, uses_torch=True)
def compare_systems(
    context: StageContext, systems: tuple[SweepSystem, ...], settings: SweepSettings, command: RunCommand
) -> None:
    """Publish figures over seeds, differences to references, and a page; for own text also advice.

    For own text, the unchanged encoder comes first.

    Raises:
        EvaluationError: vectors cannot be scored on a set.
    """
    own_text = settings.own_text
    vectors = {
        system.label: [open_vectors(context.store, ref) for ref in system.embeddings]
        for system in systems
        if system.embeddings
    }
    resamples = enough_draws(settings.config.resamples, len(vectors) - 1)
    drawn = _draws(settings, list(vectors.values()), resamples)
    result = SweepResult(tuple(vectors), tuple(drawn), settings.config.seed)
    references = tuple(label for label in settings.references if label in vectors)
    figures = pl.DataFrame([*result.rows(references), *_other_figures(context, systems, settings.others)], schema=SWEEP)
    table = pl.concat([figures, _without(figures, [one.label for one in systems if one.label not in vectors])])
    shown = own_text.figure if own_text is not None else shown_set(table, settings.shown)
    notes = [*settings.notes]
    sentence = finding(table, shown)
    if own_text is not None:
        choice = result.choice(shown, own_text.checks, own_text.may_forget)
        rows = shown_rows(table, shown).filter(reference=systems[0].label)
        sentence = advice(rows, choice, "your text" if own_text.labels is None else "your labels", resamples)
        notes += forgetting_notes(choice, own_text.may_forget)
    if drawn and len(vectors) > 1:
        smallest = f"the smallest p that a difference can reach here is {smallest_p(resamples, len(vectors) - 1):.4f}."
        notes.append(f"{resamples:,} draws and {counted(len(vectors) - 1, 'comparison')}: {smallest}")
    faults = {system.label: "; ".join(system.faults) for system in systems if system.faults}
    noted = SweepFigures(shown=shown, faults=faults, notes=notes, draws=resamples if drawn else None)
    context.draft.write(table)
    context.draft.note(ResultFigures(findings=[sentence] if sentence else []))
    context.draft.note(noted)
    chart = sweep_chart(table, shown, systems, settings.axis)
    own_parts = [
        *_run_parts(context, [system.label for system in systems], settings),
        *_own_parts(context, settings),
    ]
    publish(context, sweep_page(settings.title, table, noted, chart, [sentence], own_parts), command)


def _draws(settings: SweepSettings, vectors: Sequence[Sequence[Vectors]], resamples: int) -> list[SetDraws]:
    """Return the draws of every set, and the mean over the deciding sets of each metric."""
    # The draws of sets are independent, since figures are averaged.
    config = BootstrapConfig(resamples=resamples, seed=settings.config.seed)
    compared = draws_of_sets(with_offsets(settings.sets), vectors, config)
    compared = [found if settings.decides(found.name) else replace(found, group="") for found in compared]
    deciding = [found for found in compared if found.group]
    by_metric = {
        metric: [found for found in deciding if found.metric == metric]
        for metric in dict.fromkeys(found.metric for found in deciding)
    }
    several = {metric: sets for metric, sets in by_metric.items() if have_mean(sets)}
    return [*compared, *(mean_of(sets, MEAN, metric) for metric, sets in several.items())]


def _run_parts(context: StageContext, names: Sequence[str], settings: SweepSettings) -> list[Part]:
    """Write the scores of finished runs and return the sections on them; nothing if the systems are not such runs."""
    if not settings.runs:
        return []
    scores = result_scores(context.store, names, settings.runs)
    context.draft.write(scores, "scores")
    return run_parts(context.store, names, settings.runs, scores)


def _own_parts(context: StageContext, settings: SweepSettings) -> list[Part]:
    """Return the sections on the user's text."""
    parts = []
    if settings.own_text is not None:
        text = settings.own_text
        reports = [{"point": label, "report": f"report/{ref.key[:12]}"} for label, ref in text.reports.items()]
        use = Prose(
            "Use the encoder of a report with bsl search, embed, evaluate or export: bsl export report/KEY FOLDER"
        )
        parts = [
            Part("Encoders", [Table.of("Report of the first seed", reports), use]),
            text_part(context.store, text.passages, {}, text.sources, text.labels.summary if text.labels else ""),
        ]
    return parts


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


def advice(figures: pl.DataFrame, choice: Choice, where: str, draws: int | None = None) -> str:
    """Return which system to use, and how certain its gain on `where`, `your text` or `your labels`, is.

    The rows are of the table `sweep`: the deciding figure, compared with the original encoder, which comes first.
    """
    rows = {row["label"]: row for row in figures.drop_nulls("mean").iter_rows(named=True)}
    start, best = next(iter(rows)), choice.best
    if len(rows) == 1:
        return f"Keep the {start}: no other point has figures."
    if best == start:
        return f"Keep the {start}: no point that may be chosen is higher than its {_mean(rows[start])} on {where}."
    row = rows[best]
    difference = with_sign(row["difference"], row["difference_low"], row["difference_high"])
    p = p_value(row["p_value"], draws, len(rows) - 1)
    gain = f"{_mean(row)} compared with {_mean(rows[start])}, {difference}, p {p}"
    if row["verdict"] == "above":
        tried = len(rows) - 1
        chosen = (
            f" It was chosen from {tried} points by this figure: expect a smaller gain on new rows."
            if tried > 1
            else ""
        )
        return f"Use {best}: {gain} on {where}.{chosen}"
    return f"Keep the {start}: no point is significantly above it on {where} (highest: {best}, {gain})."


def forgetting_notes(choice: Choice, allowed: float) -> Iterator[str]:
    """Yield a note for each system that loses more on a general set than allowed."""
    for label, loss in choice.forgets.items():
        yield (
            f"{label} loses {-100 * loss:.1f} points on a general set, more than the allowed {100 * allowed:g}, so it "
            "is not advised: use it for this text only."
        )


def _mean(row: Mapping[str, Any]) -> str:
    return spread(row["mean"], row["sd"])
