"""The page of an adaptation: what was learnt, how it is proved, what to do next."""

from __future__ import annotations

from typing import cast

from models.report.adaptation import AdaptationContent, adaptation_page, proof_rows
from models.report.verdict import Verdict, Word
from storage.refs import CheckpointRef, PassagesRef, ProofRef, ReportRef, WeighingRef
from storage.texts import TextSource
from tasks.prove import SHARE, VERDICT
from tasks.report import PAGE
from tasks.stage.cached import Work, stage
from tasks.stage.show import show_markdown, show_table


@stage(ref=ReportRef, version=1)
def adaptation(
    work: Work,
    encoder: str,
    sources: tuple[TextSource, ...],
    passages: PassagesRef,
    views: tuple[str, ...],
    weighing: WeighingRef,
    proof: ProofRef,
    settings: str,
    adapted: CheckpointRef,
) -> None:
    """Write the page and show it."""
    manifest = work.store.manifest(proof)
    word, reason, advice = (str(manifest.figures[name]) for name in (VERDICT, "reason", "advice"))
    table = work.store.scan(proof).collect()
    content = AdaptationContent(
        encoder=encoder,
        verdict=Verdict(cast("Word", word), reason, advice),
        proof=table,
        weighing=work.store.scan(weighing).collect(),
        share=float(str(work.store.manifest(weighing).figures[SHARE])),
        files=[source.told for source in sources],
        figures=work.store.manifest(passages).figures,
        views=views,
        config=settings,
        artifacts={str(ref): ref.key for ref in (passages, weighing, proof, adapted)},
    )
    page = adaptation_page(content)
    (work.draft.folder / PAGE).write_text(page, encoding="utf-8")
    work.draft.note({VERDICT: word, "reason": reason, "advice": advice})
    show_markdown("adaptation", page, f"{encoder} adapted: {word}")
    show_table("adaptation-proof", [dict(row) for row in proof_rows(table)], f"{word}: {reason}")
