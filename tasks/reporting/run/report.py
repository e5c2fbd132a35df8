"""The report of a run: the page, the scores, and the model card of each encoder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from models.evaluation.verdict import Verdict, verdict_of
from storage.artifacts.refs import CheckpointRef, ReportRef
from tasks.reporting.card import CARD
from tasks.reporting.evaluation import write_figures
from tasks.reporting.model_card import CardSubject, folded_card, run_card
from tasks.reporting.provenance import RunCommand
from tasks.reporting.publish import publish
from tasks.reporting.run.content import ReportSettings, Run, RunArtifacts
from tasks.reporting.run.page import run_page
from tasks.stage.cached import StageContext, stage

if TYPE_CHECKING:
    from models.training.config import TrainingConfig
    from tasks.settings import RunSettings

PAGE: Final = "report"


@stage(ref=ReportRef, version=19)
def report(work: StageContext, made: RunArtifacts, asked: ReportSettings, told: RunCommand) -> None:
    """Publish the page, the scores, the comparisons, and the model cards of trained encoders."""
    table = pl.concat([work.store.scan(ref).collect() for ref in made.scores])
    comparison = write_figures(work, table, made.comparisons)
    verdict = _verdict(work, comparison, asked.settings, made.checkpoints)
    publish(work, run_page(Run(work, made, asked, table, comparison, verdict), told), PAGE)
    _write_cards(work, made, asked, table, verdict)
    # Name of the run's result: a comparison of runs finds its vectors and figures by it.
    candidates = (asked.settings.result, asked.settings.systems[-1])
    work.draft.note({"result": next((name for name in candidates if name in made.vectors), "")})
    if verdict:
        work.draft.note({"verdict": verdict.word, "reason": verdict.reason, "advice": verdict.advice})


def _write_cards(
    work: StageContext, made: RunArtifacts, asked: ReportSettings, scores: pl.DataFrame, verdict: Verdict | None
) -> None:
    """Write the cards of the trained encoder, and of encoders with a folded transform."""
    encoders = {CARD: (made.checkpoints[-1], "")} if made.checkpoints else {}
    suffix = asked.settings.after_transform
    names = [name for name in made.vectors if suffix and name.endswith(suffix)]
    for number, encoder in enumerate(zip(made.folded, names, strict=True) if made.folded else ()):
        encoders[folded_card(number)] = encoder
    rows = tuple(work.store.manifest(ref).rows for ref in made.pairs)
    for file, (ref, system) in encoders.items():
        length = int(str(work.store.manifest(ref).figures["max_length"]))
        subject = CardSubject(ref, rows, length, system)
        card = run_card(asked.title, asked.settings, scores, subject, verdict)
        (work.draft.folder / file).write_text(card, encoding="utf-8")


def _verdict(
    work: StageContext, comparison: pl.DataFrame | None, settings: RunSettings, checkpoints: tuple[CheckpointRef, ...]
) -> Verdict | None:
    if not checkpoints:
        return None
    figures = [work.store.manifest(ref).figures for ref in checkpoints]
    return verdict_of(
        comparison,
        settings.systems,
        settings.evaluation.dev,
        gentler(settings.phases[-1].training),
        kept_start=all(training["best_step"] == 0 for training in figures),
        finding="; then ".join(str(training["finding"]) for training in figures if training["finding"]),
    )


def gentler(training: TrainingConfig) -> str:
    """Return advice for a training that changes the encoder less."""
    advice = f"Lower training.lr (now {training.lr:g})"
    if training.max_steps is None:
        advice += ", bound training.max_steps"
    if getattr(training.objective, "contrastive_weight", None) == 0:
        advice += ", or give in-batch negatives (training.objective.contrastive_weight=0.1)"
    return f"{advice}."
