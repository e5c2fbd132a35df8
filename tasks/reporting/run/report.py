"""The report of a run: the page, the scores, and the model card of each encoder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from bsl.models.evaluation.sweep import smallest_p
from bsl.models.evaluation.verdict import Verdict, verdict_of
from bsl.storage.artifacts.refs import ReportRef
from bsl.tasks.figures import LengthFigures, ReportFigures, ResultFigures, TrainingFigures
from bsl.tasks.rendering.score_tables import systems_compared
from bsl.tasks.reporting.card import CARD
from bsl.tasks.reporting.evaluation import draws_of, write_figures
from bsl.tasks.reporting.model_card import CardSubject, folded_card, run_card
from bsl.tasks.reporting.provenance import RunCommand
from bsl.tasks.reporting.publish import publish
from bsl.tasks.reporting.run.content import ReportContent, Run, RunArtifacts
from bsl.tasks.reporting.run.page import run_page
from bsl.tasks.stage.cached import StageContext, stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bsl.models.training.config import TrainingConfig
    from bsl.tasks.settings import RunSettings


@stage(ref=ReportRef, version=32)
def report(context: StageContext, artifacts: RunArtifacts, content: ReportContent, command: RunCommand) -> None:
    """Publish the page, the scores, the comparisons, and the model cards of trained encoders."""
    table = pl.concat([context.store.scan(ref).collect() for ref in artifacts.scores])
    comparison = write_figures(context, table, artifacts.comparisons)
    trained = [context.store.manifest(ref).figures_as(TrainingFigures) for ref in artifacts.checkpoints]
    draws = draws_of(context.store, artifacts.comparisons)
    verdict = run_verdict(comparison, content.settings, trained, draws) if trained else None
    publish(context, run_page(Run(context, artifacts, content, table, comparison, verdict)), command)
    _write_cards(context, artifacts, content, table, verdict)
    context.draft.note(ReportFigures(result=content.settings.result))
    context.draft.note(ResultFigures(draws=draws))
    if verdict:
        context.draft.note(ReportFigures(verdict=verdict.word, reason=verdict.reason, advice=verdict.advice))


def _write_cards(
    context: StageContext,
    artifacts: RunArtifacts,
    content: ReportContent,
    scores: pl.DataFrame,
    verdict: Verdict | None,
) -> None:
    """Write the cards of the trained encoder, and of encoders with a folded transform."""
    encoders = {CARD: (artifacts.checkpoints[-1], "")} if artifacts.checkpoints else {}
    suffix = content.settings.after_transform
    names = [name for name in artifacts.vectors if suffix and name.endswith(suffix)]
    for number, encoder in enumerate(zip(artifacts.folded, names, strict=True) if artifacts.folded else ()):
        encoders[folded_card(number)] = encoder
    rows = tuple(context.store.manifest(ref).rows for ref in artifacts.pairs)
    for file, (ref, system) in encoders.items():
        length = context.store.manifest(ref).figures_as(LengthFigures).max_length
        subject = CardSubject(ref, rows, length, system)
        card = run_card(content.title, content.settings, scores, subject, verdict, content.base)
        (context.draft.folder / file).write_text(card, encoding="utf-8")


def run_verdict(
    comparison: pl.DataFrame | None, settings: RunSettings, trained: Sequence[TrainingFigures], draws: int | None = None
) -> Verdict:
    """Return the verdict on the last encoder of a run, by the table `comparison` and the figures of all trainings.

    The number of bootstrap draws limits p.
    """
    return verdict_of(
        comparison,
        settings.systems,
        settings.selecting_dev,
        gentler(settings.phases[-1].training),
        kept_start=all(training.best_step == 0 for training in trained),
        finding="; then ".join(training.finding for training in trained if training.finding),
        smallest=0.0 if comparison is None or draws is None else smallest_p(draws, systems_compared(comparison)),
    )


def gentler(training: TrainingConfig) -> str:
    """Return advice for a training that changes the encoder less."""
    advice = f"Lower training.lr (now {training.lr:g})"
    if training.max_steps is None:
        advice += ", bound training.max_steps"
    if training.objective.lacks_negatives:
        advice += ", or give in-batch negatives (training.objective.contrastive_weight=0.1)"
    return f"{advice}."
