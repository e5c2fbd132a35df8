"""The page of an adaptation: what was learnt, how it is proved, what to do next."""

from __future__ import annotations

from typing import cast

from models.report.adaptation import AdaptationContent, adaptation_page
from models.report.verdict import Verdict, Word
from storage.artifacts.refs import CheckpointRef, CorpusRef, PassagesRef, ProofRef, ReportRef, ViewsRef, WeighingRef
from storage.sources.labels import LabelSource
from storage.sources.own_text import TextSource
from tasks.adaptation import SHARE, VERDICT
from tasks.corpus.labels import said_of
from tasks.reporting.adapted_card import adapted_card
from tasks.reporting.model_card import CARD
from tasks.reporting.run.content import Told
from tasks.reporting.run.report import HTML, PAGE
from tasks.reporting.sections import own_text
from tasks.stage.cached import StageInputs, Work, stage
from tasks.stage.ui import show_markdown


class AdaptationArtifacts(StageInputs):
    """The artifacts of an adaptation."""

    passages: PassagesRef
    """Sentences of the text, by part."""
    corpus: CorpusRef
    """The learnt sentences."""
    views: ViewsRef
    """Views of the corpus: crops, or only its sentences."""
    trips: ViewsRef | None
    """Round trips of some sentences; None where no translator knows the language."""
    trained: CheckpointRef
    """The trained encoder."""
    weighing: WeighingRef
    """Figures for each share of the training."""
    proof: ProofRef
    """Figures of the adapted encoder."""
    adapted: CheckpointRef
    """The encoder that the person gets."""


class AdaptationSettings(StageInputs):
    """The content of an adaptation's page that no artifact has."""

    encoder: str
    """The person's name for the start."""
    sources: tuple[TextSource, ...]
    """The files."""
    labels: LabelSource | None
    """Labels, which decide instead of the text; None without any."""
    taught: tuple[str, ...]
    """Names of the learnt views."""
    missing: tuple[str, ...]
    """General sets of a suite that were not found."""
    settings: str
    """All settings as JSON."""
    translators: tuple[str, ...]
    """Models of the round trips."""


@stage(ref=ReportRef, version=6)
def adaptation(work: Work, made: AdaptationArtifacts, asked: AdaptationSettings, told: Told) -> None:
    """Write the pages and the encoder's card, and show them.

    Args:
        work: the stage's.
        made: the artifacts.
        asked: settings and sources.
        told: how to start the same again.
    """
    from models.report.adaptation_page import adaptation_html  # matplotlib

    manifest = work.store.manifest(made.proof)
    word, reason, advice = (str(manifest.figures[name]) for name in (VERDICT, "reason", "advice"))
    table = work.store.scan(made.proof).collect()
    shown = {"Crops of a sentence": made.views} | ({"Round trips": made.trips} if made.trips else {})
    labels = asked.labels
    left_out = said_of(work.store.manifest(made.corpus).figures, labels)
    labelled = " ".join([f"{labels.told}.", *left_out]) if labels else ""
    content = AdaptationContent(
        encoder=asked.encoder,
        verdict=Verdict(cast("Word", word), reason, advice),
        proof=table,
        missing=asked.missing,
        weighing=work.store.scan(made.weighing).collect(),
        share=float(str(work.store.manifest(made.weighing).figures[SHARE])),
        log=work.store.scan(made.trained, "training_log").collect(),
        views=asked.taught,
        own=own_text(work.store, made.passages, shown, asked.sources, labelled, asked.settings, told),
        artifacts={str(ref): ref.key for ref in (made.passages, made.weighing, made.proof, made.adapted)},
    )
    page = adaptation_page(content)
    (work.draft.folder / PAGE).write_text(page, encoding="utf-8")
    (work.draft.folder / HTML).write_text(adaptation_html(content), encoding="utf-8")
    card = adapted_card(content, made.adapted, asked.sources, asked.translators if made.trips else ())
    (work.draft.folder / CARD).write_text(card, encoding="utf-8")
    work.draft.note({VERDICT: word, "reason": reason, "advice": advice, "missing": list(asked.missing)})
    show_markdown("adaptation", page, f"{asked.encoder} adapted: {word}")
