"""The page of an adaptation: what was learnt, how it is proved, what to do next."""

from __future__ import annotations

from typing import cast

from models.report.adaptation import AdaptationContent, adaptation_page
from models.report.verdict import Verdict, Word
from storage.labels import LabelSource
from storage.refs import CheckpointRef, CorpusRef, PassagesRef, ProofRef, ReportRef, ViewsRef, WeighingRef
from storage.texts import TextSource
from tasks.adapted_card import adapted_card
from tasks.card import CARD
from tasks.labels import said_of
from tasks.own_text import own_text
from tasks.prove import SHARE, VERDICT
from tasks.report import HTML, PAGE
from tasks.report_content import Told
from tasks.stage.cached import Work, stage
from tasks.stage.show import show_markdown


@stage(ref=ReportRef, version=6)
def adaptation(
    work: Work,
    encoder: str,
    sources: tuple[TextSource, ...],
    passages: PassagesRef,
    corpus: CorpusRef,
    labels: LabelSource | None,
    taught: tuple[str, ...],
    views: ViewsRef,
    trips: ViewsRef | None,
    trained: CheckpointRef,
    weighing: WeighingRef,
    proof: ProofRef,
    missing: tuple[str, ...],
    settings: str,
    translators: tuple[str, ...],
    adapted: CheckpointRef,
    told: Told,
) -> None:
    """Write the pages and the encoder's card, and show them.

    Args:
        work: the stage's.
        encoder: what the person calls the start.
        sources: the files.
        passages: their sentences.
        corpus: what was learnt of them.
        labels: what decides instead of the text; None without any.
        taught: names of the views that were learnt.
        views: of what was learnt: crops, or none but its sentences.
        trips: round trips of some sentences; None where no translator knows the language.
        trained: what training left.
        weighing: what each share of it finds.
        proof: what the adapted encoder finds.
        missing: general sets of a suite that could not be had.
        settings: all settings as JSON.
        translators: models of the round trips.
        adapted: what is handed out.
        told: how to start the same again.
    """
    from models.report.adaptation_page import adaptation_html  # matplotlib

    manifest = work.store.manifest(proof)
    word, reason, advice = (str(manifest.figures[name]) for name in (VERDICT, "reason", "advice"))
    table = work.store.scan(proof).collect()
    shown = {"Crops of a sentence": views} | ({"Round trips": trips} if trips else {})
    left_out = said_of(work.store.manifest(corpus).figures, labels)
    labelled = ". ".join([labels.told, *left_out]) if labels else ""
    content = AdaptationContent(
        encoder=encoder,
        verdict=Verdict(cast("Word", word), reason, advice),
        proof=table,
        missing=missing,
        weighing=work.store.scan(weighing).collect(),
        share=float(str(work.store.manifest(weighing).figures[SHARE])),
        log=work.store.scan(trained, "training_log").collect(),
        views=taught,
        own=own_text(work.store, passages, shown, sources, labelled, settings, told),
        artifacts={str(ref): ref.key for ref in (passages, weighing, proof, adapted)},
    )
    page = adaptation_page(content)
    (work.draft.folder / PAGE).write_text(page, encoding="utf-8")
    (work.draft.folder / HTML).write_text(adaptation_html(content), encoding="utf-8")
    card = adapted_card(content, adapted, sources, translators if trips else ())
    (work.draft.folder / CARD).write_text(card, encoding="utf-8")
    work.draft.note({VERDICT: word, "reason": reason, "advice": advice, "missing": list(missing)})
    show_markdown("adaptation", page, f"{encoder} adapted: {word}")
