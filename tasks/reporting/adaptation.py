"""The report of an adaptation: the page with verdict, gains, training and held-out text, and the encoder's card."""

from __future__ import annotations

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
from tasks.reporting.card import CARD, UNDECLARED, USE, Material, card, hub_id, model_material
from tasks.reporting.provenance import RunCommand
from tasks.reporting.publish import publish
from tasks.reporting.sections import reproduce_part, settings_part, text_part, use_part
from tasks.stage.cached import StageContext, StageInputs, stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from storage.artifacts.refs import ArtifactRef
    from storage.artifacts.store import Store

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


def exported(verdict: Verdict) -> str:
    """Return a phrase for the exported encoder."""
    return "the adapted encoder" if verdict.word == "BETTER" else "the original encoder, unchanged"


def training_summary(views: Sequence[str], share: float) -> str:
    """Return the goal of training on views or `labels`, and the share of the trained weights, as a sentence."""
    goal = "similarities follow the labels"
    if "labels" not in views:
        goal = f"{' and '.join(_VIEWS.get(view, view) for view in views)} of a sentence are similar"
    rest = "" if share == 1 else ", the rest from the original encoder"
    return f"Training goal: {goal}. Exported weights: {100 * share:g} % from the trained encoder{rest}."


@stage(ref=ReportRef, version=14)
def adaptation(
    context: StageContext, artifacts: AdaptationArtifacts, content: AdaptationContent, command: RunCommand
) -> None:
    """Publish the page of an adaptation and the encoder's card."""
    store = context.store
    found = store.manifest(artifacts.proof).figures
    verdict = Verdict(cast("Word", found[VERDICT]), str(found["reason"]), str(found["advice"]))
    proof, weighing = (store.scan(ref).collect() for ref in (artifacts.proof, artifacts.weighing))
    training = training_summary(content.views, float(str(store.manifest(artifacts.weighing).figures[SHARE])))
    log = store.scan(artifacts.trained, "training_log").collect()
    counts = counts_of(store, artifacts)
    labels = ""
    if content.labels:
        excluded = summary_of(store.manifest(artifacts.corpus).figures, content.labels)
        labels = " ".join([f"{content.labels.summary}.", *excluded])
    samples = {"Crops of a sentence": artifacts.views, "Round trips": artifacts.trips}
    views = {title: ref for title, ref in samples.items() if ref}
    shown = (artifacts.passages, artifacts.weighing, artifacts.proof, artifacts.adapted)
    parts = [
        Part("Rows", [Facts({name: f"{count:,}" for name, count in counts.items()})]),
        *figure_parts(proof, content.missing, training, weighing, log),
        text_part(store, artifacts.passages, views, content.sources, labels),
        settings_part(content.settings),
        use_part(str(artifacts.adapted)),
        Part("Artifacts", [Facts({ref.kind: ref.key for ref in shown})]),
        reproduce_part(command),
    ]
    publish(context, adaptation_page(content.encoder, verdict, proof, parts))
    described = adapted_card(content, verdict, proof, training, artifacts.adapted)
    (context.draft.folder / CARD).write_text(described, encoding="utf-8")
    context.draft.note(
        {
            VERDICT: verdict.word,
            "reason": verdict.reason,
            "advice": verdict.advice,
            "findings": [f"{verdict.word}: {verdict.reason}. {verdict.advice}"],
            "missing": list(content.missing),
            ROWS: {**counts},
        }
    )


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


def adaptation_page(encoder: str, verdict: Verdict, proof: pl.DataFrame, parts: Sequence[Part]) -> Page:
    """Return the page: the verdict and a chart of the differences above the sections."""
    from tasks.rendering.charts import mark_of, score_chart  # matplotlib

    marks = [
        mark_of(f"{name}, {metric}", _ROLES[role], *figure)
        for name, metric, role, *figure in proof.select(
            "evidence", "metric", "role", "difference", "ci_low", "ci_high"
        ).rows()
    ]
    chart = score_chart(marks, "Difference × 100 from the original encoder", line=0.0) if marks else None
    sentences = [f"{verdict.found} Exported: {exported(verdict)}."]
    return Page.of_result(f"{encoder} adapted to your text", sentences, chart, parts, verdict.word)


def figure_parts(
    proof: pl.DataFrame, missing: Sequence[str], training: str, weighing: pl.DataFrame, log: pl.DataFrame
) -> list[Part]:
    """Return the sections on the figures before and after, and on training.

    Args:
        proof: the table `proof`.
        missing: general sets that were not found.
        training: the sentence of `training_summary`.
        weighing: the table `weighing`.
        log: the table `training_log`.
    """
    from tasks.rendering.charts import training_charts  # matplotlib

    absent = [Prose(f"Not evaluated because they are not available: {', '.join(missing)}.")] if missing else []
    table = Table.of("Figures × 100", proof_rows(proof))
    scores = [] if weighing.is_empty() else [Table.of("General dev set × 100 by share", weighed(weighing.iter_rows()))]
    return [
        Part("Proof", [Prose(_HELD_OUT), table, Prose(_DRAWN, note=True), *absent]),
        Part("Training", [Prose(training), *scores, Charts(training_charts({"training": log}))]),
    ]


def adapted_card(
    content: AdaptationContent, verdict: Verdict, proof: pl.DataFrame, training: str, checkpoint: CheckpointRef
) -> str:
    """Return the model card as Markdown; `training` is the sentence of `training_summary`."""
    better = verdict.word == "BETTER"
    materials = [model_material("original encoder", content.encoder)]
    if better:
        materials += _training_materials(content)
        if "round trips" in content.views:
            materials += [model_material("translation of views", model) for model in content.translators]
    unchanged = "The verdict on the trained encoder is not BETTER, so this is the original encoder, byte for byte."
    about = f"A sentence encoder: {exported(verdict)}. {training if better else unchanged}"
    page = Page(
        title=f"{content.encoder}, {'adapted' if better else 'unchanged'}",
        word=verdict.word,
        sentence=verdict.found,
        lead=[Prose(f"{about} Compare its vectors by cosine.")],
        parts=[
            USE,
            Part("Figures", [Table.of(_MEASURED, proof_rows(proof))]),
            Part("Limits", [Prose(_LIMITS)]),
        ],
    )
    languages = sorted({source.lang for source in content.sources}) if better else []
    return card(page, materials, hub_id(content.encoder), checkpoint, languages=languages)


def _training_materials(content: AdaptationContent) -> list[Material]:
    if content.labels and "labels" in content.views:
        return [Material("labels", stem_of(content.labels.path), UNDECLARED)]
    return [Material("sentences", source.name, UNDECLARED) for source in content.sources]
