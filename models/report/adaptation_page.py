"""An adaptation's page in HTML: the verdict, the gains with their intervals, what was learnt, what was held out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from models.report.adaptation import MRR, exported, learnt, proof_rows, taken, unasked, weighed
from models.report.charts import mark_of, score_chart, training_charts
from models.report.html import Charts, Facts, Page, Part, Prose, Table
from models.report.own_text import again_part, text_part
from models.report.use import use_part

if TYPE_CHECKING:
    from models.report.adaptation import AdaptationContent
    from models.report.html import Block

_COLOURS: Final = {"counts": "after", "guard": "before", "shown": "baseline"}
_DRAWN: Final = (
    "The adapted encoder less the start, each with its 95 % interval; at 0 they are equal. What decides is drawn as a "
    "diamond, what may forbid as a circle, what is only shown as a square."
)


def adaptation_html(content: AdaptationContent) -> str:
    """The page as one HTML file; equal content gives equal text."""
    verdict = content.verdict
    marks = [
        mark_of(f"{name}, {metric}", _COLOURS[role], *figure)
        for name, metric, role, *figure in content.proof.select(
            "evidence", "metric", "role", "difference", "ci_low", "ci_high"
        ).rows()
    ]
    lead: list[Block] = [Charts([score_chart(marks, "Difference × 100 from the start", line=0.0)], lead=True)]
    than = "than the start: " if verdict.than else ""
    return Page(
        title=f"{content.encoder} adapted to your text",
        word=verdict.word,
        sentence=f"{than}{verdict.reason}. {verdict.advice} Exported: {exported(verdict)}.",
        lead=[*lead, Prose(_DRAWN, note=True)] if marks else [],
        parts=_parts(content),
    ).html()


def _parts(content: AdaptationContent) -> list[Part]:
    shares = Table.of("Figures × 100 by share", weighed(content.weighing))
    asked = (
        "Asked of documents that were held out and chose nothing; intervals by drawing documents, of long ones runs of "
        f"sentences. {MRR}"
    )
    evidence: list[Block] = [Prose(asked), Table.of("Figures × 100, before and after", proof_rows(content.proof))]
    evidence += [Prose(unasked(content.missing))] if content.missing else []
    curves: list[Block] = [] if content.log is None else [Charts(training_charts({"training": content.log}))]
    return [
        Part("Proof", evidence),
        Part("What was learnt", [Prose(learnt(content)), shares, Prose(taken(content.share)), *curves]),
        text_part(content.own),
        use_part(next((name for name in content.artifacts if name.startswith("checkpoint/")), "")),
        Part("Artifacts", [Facts({name.partition("/")[0]: name for name in content.artifacts})]),
        again_part(content.own),
    ]
