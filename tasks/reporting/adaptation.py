"""The report of an adaptation: the page with verdict, gains, training and held-out text, and the encoder's card."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from models.corpus.labels import JUDGE
from models.evaluation.verdict import Verdict, Word
from storage.artifacts.refs import (
    CheckpointRef,
    CorpusRef,
    PairsRef,
    PassagesRef,
    ProofRef,
    ReportRef,
    ViewsRef,
    WeighingRef,
)
from storage.sources.labels import LabelSource
from storage.sources.own_text import TextSource
from storage.sources.sources import stem_of
from tasks.adaptation import SHARE, VERDICT
from tasks.corpus.labels import summary_of
from tasks.rendering.blocks import Charts, Facts, Page, Part, Prose, Table
from tasks.rendering.evidence import MRR, proof_rows, weighed
from tasks.reporting.card import CARD, UNDECLARED, USE, Header, Material, card, hub_id, model_material
from tasks.reporting.provenance import RunCommand
from tasks.reporting.publish import publish
from tasks.reporting.run.report import PAGE
from tasks.reporting.sections import reproduce_part, settings_part, text_part, use_part
from tasks.stage.cached import StageContext, StageInputs, stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl
    from pydantic import JsonValue

    from storage.artifacts.refs import ArtifactRef
    from storage.artifacts.store import Store
    from tasks.rendering.blocks import Block

ROWS: Final = "rows"
"""Figure of a report: the result of `counts_of`."""
_ROLES: Final = {"counts": "after", "guard": "before", "shown": "baseline"}
_DRAWN: Final = (
    "The chart shows the adapted encoder minus the original encoder, with 95 % intervals; at 0 they are equal. A "
    "diamond marks a figure that decides, a circle one that can veto, a square one that is reported only."
)
_HELD_OUT: Final = (
    "Figures on held-out documents and labels, with 95 % intervals. The bootstrap draws documents; it draws long "
    f"documents in runs of sentences. {MRR}"
)
_VIEWS: Final = {"dropout": "two encodings under dropout"}
_MEASURED: Final = "The original and the adapted encoder, × 100, on held-out documents and labels, with 95 % intervals"
_LIMITS: Final = (
    "The figures hold for the text named below, not for other kinds of text. Bias in the original encoder and in that "
    "text was neither measured nor removed."
)


class AdaptationArtifacts(StageInputs):
    """The artifacts of an adaptation."""

    passages: PassagesRef
    """Sentences of the text, by part."""
    corpus: CorpusRef
    """Training sentences."""
    views: ViewsRef | None
    """Views of the corpus: crops, or only its sentences; None when training on labels."""
    trips: ViewsRef | None
    """Round trips of some sentences; None without round trips."""
    pairs: PairsRef
    """Training pairs."""
    trained: CheckpointRef
    """The trained encoder."""
    weighing: WeighingRef
    """Figures for each share of the training."""
    proof: ProofRef
    """Figures of the adapted encoder."""
    adapted: CheckpointRef
    """The exported encoder: adapted or unchanged."""


class AdaptationContent(StageInputs):
    """Content of an adaptation's page that is in no artifact."""

    encoder: str
    """The user's name for the original encoder."""
    sources: tuple[TextSource, ...]
    """The files."""
    labels: LabelSource | None
    """Labels, which decide the verdict instead of the text; None without labels."""
    views: tuple[str, ...]
    """Names of the training views, or `labels`."""
    missing: tuple[str, ...]
    """General sets of a suite that were not found."""
    settings: str
    """All settings as JSON."""
    translators: tuple[str, ...]
    """Models of the round trips."""


@dataclass(frozen=True)
class Adapted:
    """An adapted encoder, or the unchanged original.

    Attributes:
        encoder: the user's name for the original encoder.
        verdict: word, reason and advice.
        proof: the table `proof`.
        share: share of the trained weights in the merged encoder.
        views: names of the training views, or `labels`.
    """

    encoder: str
    verdict: Verdict
    proof: pl.DataFrame
    share: float
    views: Sequence[str]


def exported(verdict: Verdict) -> str:
    """Return a phrase for the exported encoder."""
    return "the adapted encoder" if verdict.word == "BETTER" else "the original encoder, unchanged"


def training_summary(adapted: Adapted) -> str:
    """Return the goal of training and the share of the trained weights as a sentence."""
    goal = "similarities follow the labels"
    if "labels" not in adapted.views:
        goal = f"{' and '.join(_VIEWS.get(view, view) for view in adapted.views)} of a sentence are similar"
    rest = "" if adapted.share == 1 else ", the rest from the original encoder"
    return f"Training goal: {goal}. Exported weights: {100 * adapted.share:g} % from the trained encoder{rest}."


@stage(ref=ReportRef, version=13)
def adaptation(
    context: StageContext, artifacts: AdaptationArtifacts, content: AdaptationContent, command: RunCommand
) -> None:
    """Publish the page of an adaptation and the encoder's card."""
    manifest = context.store.manifest(artifacts.proof)
    word, reason, advice = (str(manifest.figures[name]) for name in (VERDICT, "reason", "advice"))
    adapted = Adapted(
        encoder=content.encoder,
        verdict=Verdict(cast("Word", word), reason, advice),
        proof=context.store.scan(artifacts.proof).collect(),
        share=float(str(context.store.manifest(artifacts.weighing).figures[SHARE])),
        views=content.views,
    )
    counts = counts_of(context.store, artifacts)
    shown = (artifacts.passages, artifacts.weighing, artifacts.proof, artifacts.adapted)
    parts = [
        Part("Rows", [Facts({name: f"{count:,}" for name, count in counts.items()})]),
        evidence_part(adapted.proof, content.missing),
        training_part(
            adapted,
            context.store.scan(artifacts.weighing).collect(),
            context.store.scan(artifacts.trained, "training_log").collect(),
        ),
        text_part(
            context.store,
            artifacts.passages,
            _samples(artifacts),
            content.sources,
            _labelled(context, artifacts, content),
        ),
        settings_part(content.settings),
        use_part(str(artifacts.adapted)),
        Part("Artifacts", [Facts({ref.kind: ref.key for ref in shown})]),
        reproduce_part(command),
    ]
    publish(context, adaptation_page(adapted, parts), PAGE)
    texts = [source.name for source in content.sources]
    if content.labels and artifacts.views is None:
        texts = [stem_of(content.labels.path)]
    languages = sorted({source.lang for source in content.sources})
    translators = content.translators if artifacts.trips else ()
    described = adapted_card(adapted, artifacts.adapted, texts, languages, translators)
    (context.draft.folder / CARD).write_text(described, encoding="utf-8")
    figures: dict[str, JsonValue] = {VERDICT: word, "reason": reason, "advice": advice}
    sentences = [f"{word}: {reason}. {advice}"]
    context.draft.note(figures | {"findings": [*sentences], "missing": list(content.missing), ROWS: dict(counts)})


def counts_of(store: Store, artifacts: AdaptationArtifacts) -> dict[str, int]:
    """Return the numbers of sentences and labels for training and for evaluation."""

    def count(ref: ArtifactRef, name: str) -> int:
        return int(str(store.manifest(ref).figures.get(name, 0)))

    return {
        "training sentences": 0 if artifacts.views is None else count(artifacts.corpus, "sentences"),
        "training labels": count(artifacts.pairs, "labels"),
        "test labels": count(artifacts.corpus, f"labels {JUDGE}"),
        "held-out sentences": count(artifacts.passages, "report sentences"),
    }


def adaptation_page(adapted: Adapted, parts: list[Part]) -> Page:
    """Return the page: the verdict and a chart of the differences above the sections."""
    from tasks.rendering.charts import mark_of, score_chart  # matplotlib

    marks = [
        mark_of(f"{name}, {metric}", _ROLES[role], *figure)
        for name, metric, role, *figure in adapted.proof.select(
            "evidence", "metric", "role", "difference", "ci_low", "ci_high"
        ).rows()
    ]
    chart = score_chart(marks, "Difference × 100 from the original encoder", line=0.0) if marks else None
    sentences = [f"{adapted.verdict.found} Exported: {exported(adapted.verdict)}."]
    return Page.of_result(f"{adapted.encoder} adapted to your text", sentences, chart, parts, adapted.verdict.word)


def evidence_part(proof: pl.DataFrame, missing: tuple[str, ...]) -> Part:
    """Return the section of the figures before and after; `missing` are general sets that were not found."""
    absent = [Prose(f"Not evaluated because they are not available: {', '.join(missing)}.")] if missing else []
    table = Table.of("Figures × 100", proof_rows(proof))
    return Part("Proof", [Prose(_HELD_OUT), table, Prose(_DRAWN, note=True), *absent])


def training_part(adapted: Adapted, weighing: pl.DataFrame, log: pl.DataFrame | None) -> Part:
    """Return the section on training: its goal, the chosen share, the figures by share, curves."""
    from tasks.rendering.charts import training_charts  # matplotlib

    scores = [] if weighing.is_empty() else [Table.of("General dev set × 100 by share", weighed(weighing.iter_rows()))]
    blocks: list[Block] = [Prose(training_summary(adapted)), *scores]
    curves = [] if log is None else [Charts(training_charts({"training": log}))]
    return Part("Training", [*blocks, *curves])


def adapted_card(
    adapted: Adapted,
    checkpoint: CheckpointRef,
    texts: Sequence[str],
    languages: Sequence[str],
    translators: Sequence[str],
) -> str:
    """Return the model card as Markdown.

    Args:
        adapted: the encoder.
        checkpoint: its artifact.
        texts: names of the texts used for training.
        languages: languages of the text.
        translators: models of the round trips used for training.
    """
    better = adapted.verdict.word == "BETTER"
    materials = [model_material("original encoder", adapted.encoder)]
    if better:
        role = "labels" if "labels" in adapted.views else "sentences"
        materials += [Material(role, name, UNDECLARED) for name in texts]
        if "round trips" in adapted.views:
            materials += [model_material("translation of views", model) for model in translators]
    origin = (
        training_summary(adapted)
        if better
        else "The verdict on the trained encoder is not BETTER, so this is the original encoder, byte for byte."
    )
    page = Page(
        title=f"{adapted.encoder}, {'adapted' if better else 'unchanged'}",
        word=adapted.verdict.word,
        sentence=adapted.verdict.found,
        lead=[Prose(f"A sentence encoder: {exported(adapted.verdict)}. {origin} Compare its vectors by cosine.")],
        parts=[
            USE,
            Part("Figures", [Table.of(_MEASURED, proof_rows(adapted.proof))]),
            Part("Limits", [Prose(_LIMITS)]),
        ],
    )
    header = Header(hub_id(adapted.encoder), languages=languages if better else ())
    return card(page, materials, header, checkpoint.key)


def _samples(artifacts: AdaptationArtifacts) -> dict[str, ViewsRef]:
    both = {"Crops of a sentence": artifacts.views, "Round trips": artifacts.trips}
    return {title: ref for title, ref in both.items() if ref is not None}


def _labelled(context: StageContext, artifacts: AdaptationArtifacts, content: AdaptationContent) -> str:
    """Return how the labels were read, and which of them were excluded."""
    excluded = summary_of(context.store.manifest(artifacts.corpus).figures, content.labels)
    return " ".join([f"{content.labels.summary}.", *excluded]) if content.labels else ""
