"""The report of an adaptation: the page with verdict, gains, training and held-out text, and the encoder's card."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from bsl.models.evaluation.uses import USES
from bsl.storage.artifacts.refs import (
    ENCODER,
    ArtifactRef,
    CheckpointRef,
    ClassifierRef,
    CorpusRef,
    PairsRef,
    PassagesRef,
    ProofRef,
    ReportRef,
    ViewsRef,
)
from bsl.storage.sources.labels import LabelSource
from bsl.storage.sources.own_text import TextSource
from bsl.storage.sources.sources import stem_of
from bsl.tasks.corpus.labels import counts_line, split_of
from bsl.tasks.embedding.to_label import TO_LABEL, to_label_summary, write_to_label
from bsl.tasks.figures import (
    AdaptationFigures,
    ClassifierFigures,
    ExportFigures,
    LabelCounts,
    LabelPairsFigures,
    OwnCorpusFigures,
    ProofFigures,
    ShareFigures,
)
from bsl.tasks.rendering.blocks import Facts, Page, Part, Prose, Table
from bsl.tasks.rendering.evidence import MRR, answer_blocks, answer_of, proof_rows, share_tables
from bsl.tasks.reporting.card import (
    CARD,
    NO_CARD,
    OWN,
    BaseCard,
    Material,
    card,
    data_licence,
    data_set,
    hub_id,
    model_material,
    use_section,
)
from bsl.tasks.reporting.classifier import card_part, classifier_part, classifier_summary
from bsl.tasks.reporting.provenance import RunCommand
from bsl.tasks.reporting.public_names import public_names, with_public_names
from bsl.tasks.reporting.publish import publish
from bsl.tasks.reporting.sections import encoder_name, sample_part, settings_part, text_name, text_part, use_part
from bsl.tasks.stage.cached import StageContext, StageInputs, stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bsl.models.corpus.labels import Use
    from bsl.models.evaluation.verdict import Verdict
    from bsl.storage.artifacts.store import Store

_MARKS: Final = {"decides": "after", "vetoes": "before", "reported": "baseline"}
_DRAWN: Final = (
    "The chart shows the adapted encoder minus the original encoder, with 95 % intervals; at 0 they are equal. A "
    "diamond marks a figure that decides, a circle one that can veto, a square one that is reported only."
)
_HELD_OUT: Final = (
    "Figures on held-out documents and labels, with 95 % intervals. The bootstrap draws documents; it draws long "
    f"documents in runs of sentences. {MRR}"
)
_ANSWERS: Final = "What it is better for"
_VIEWS: Final = {"dropout": "two encodings under dropout"}
_MEASURED: Final = "The original and the adapted encoder, × 100, on held-out documents and labels, with 95 % intervals"
_LIMITS: Final = (
    "The figures hold for this text, not for other kinds of text. Bias in the original encoder and in that "
    "text was neither measured nor removed."
)


class AdaptationArtifacts(StageInputs):
    """The artifacts of an adaptation."""

    passages: PassagesRef
    corpus: CorpusRef
    views: ViewsRef | None
    """Views of the corpus: crops, or only its sentences; None when training on labels."""
    trips: ViewsRef | None
    """Round trips of some sentences; None without round trips."""
    pairs: PairsRef
    trained: CheckpointRef
    weighing: ArtifactRef
    """Figures for each share of the training."""
    proof: ProofRef
    classifier: ClassifierRef | None
    """A linear classifier on the exported encoder's vectors; None without labels of classes."""
    adapted: CheckpointRef
    """The exported encoder: adapted or unchanged."""
    to_label: CorpusRef | None = None
    """Texts to label; None with labels."""


class AdaptationContent(StageInputs):
    """Content of an adaptation's page that is in no artifact."""

    encoder: str
    """The user's name for the original encoder."""
    sources: tuple[TextSource, ...]
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
    rehearsal: str = ""
    """General set whose sentences were in training beside labels; empty for none."""
    rehearses_text: bool = False
    """Whether sentences of the text were in training beside labels."""
    base: BaseCard = NO_CARD
    """What the original encoder's own card says."""


@dataclass(frozen=True)
class Adapted:
    """What the page and the card say about the encoder.

    Attributes:
        verdict: The verdict on the adapted encoder.
        proof: The table `proof`.
        training: Sentence of `training_summary`.
        accepted: Whether the adapted encoder is exported without proof, by `--accept`.
        draws: Number of bootstrap draws.
        split: Sentence of `split_of`; empty without labels.
    """

    verdict: Verdict
    proof: pl.DataFrame
    training: str
    accepted: bool = False
    draws: int | None = None
    split: str = ""

    @property
    def exported(self) -> str:
        """A phrase for the exported encoder."""
        if self.accepted:
            return "the adapted encoder without proof, by --accept"
        return "the adapted encoder" if self.verdict.word == "BETTER" else "the original encoder, unchanged"

    @property
    def worse_uses(self) -> set[str]:
        """The uses for which the exported encoder is worse than the original; none if it is the original."""
        if self.verdict.word != "BETTER":
            return set()
        return {row["use"] for row in self.proof.iter_rows(named=True) if row["use"] and answer_of(row) == "worse"}


def training_summary(views: Sequence[str], share: float) -> str:
    """Return the goal of training on views or `labels`, and the adapted encoder's share of the trained weights."""
    goal = "similarities follow the labels"
    if "labels" not in views:
        goal = f"{' and '.join(_VIEWS.get(view, view) for view in views)} of a sentence are similar"
    rest = "" if share == 1 else ", the rest from the original encoder"
    return f"Training goal: {goal}. Weights of the adapted encoder: {100 * share:g} % from the trained encoder{rest}."


@stage(ref=ReportRef, version=23)
def adaptation(
    context: StageContext, artifacts: AdaptationArtifacts, content: AdaptationContent, command: RunCommand
) -> None:
    """Publish the page of an adaptation and the encoder's card."""
    store = context.store
    found = store.manifest(artifacts.proof).figures_as(ProofFigures)
    is_adapted = store.manifest(artifacts.adapted).figures_as(ExportFigures).adapted
    share = store.manifest(artifacts.weighing).figures_as(ShareFigures).share
    counts = counts_of(store, artifacts, reads_text=artifacts.views is not None or content.rehearses_text)
    labels = split = ""
    if content.labels:
        figures = store.manifest(artifacts.corpus).figures_as(LabelCounts)
        use: Use = "adapt" if "labels" in content.views else "judge"
        split = split_of(figures, content.labels)
        labels = f"{content.labels.summary}. {counts_line(figures, content.labels, use)}."
    pages, cards, accuracy = [], [], ""
    if artifacts.classifier and content.labels:
        tested, encoder = store.manifest(artifacts.classifier).figures_as(ClassifierFigures), artifacts.adapted.path
        accuracy, cards = classifier_summary(tested), [card_part(tested, content.labels)]
        confusion = store.scan(artifacts.classifier).collect()
        pages = [classifier_part(tested, confusion, content.labels, f"{encoder}/{ENCODER}", str(context.ref))]
    notes = [split] if split else []
    if artifacts.to_label is not None:
        notes.append(to_label_summary(store, artifacts.to_label))
    adapted = Adapted(
        found.judgement,
        store.scan(artifacts.proof).collect(),
        training_summary(content.views, share),
        accepted=is_adapted and found.verdict != "BETTER",
        draws=found.draws,
        split=split,
    )
    samples = {"Crops of a sentence": artifacts.views, "Round trips": artifacts.trips}
    views = {title: ref for title, ref in samples.items() if ref}
    shown = (artifacts.passages, artifacts.weighing, artifacts.proof, artifacts.adapted)
    parts = [
        Part(_ANSWERS, answer_blocks(adapted.proof, adapted.draws)),
        sample_part(store.scan(artifacts.proof, "samples").collect()),
        *pages,
        Part("Rows", [Facts({name: f"{count:,}" for name, count in counts.items()}), *map(Prose, notes)]),
        *figure_parts(
            adapted,
            content.missing,
            store.scan(artifacts.weighing).collect(),
            store.scan(artifacts.trained, "training_log").collect(),
        ),
        text_part(store, artifacts.passages, views, content.sources, labels),
        settings_part(content.settings),
        use_part(str(artifacts.adapted), adapted.worse_uses),
        Part("Artifacts", [Facts({ref.kind: ref.key for ref in shown})]),
    ]
    title = f"{encoder_name(content.encoder)} adapted to {text_name(content.sources)}"
    publish(context, adaptation_page(title, adapted, parts), command)
    described = adapted_card(content, adapted, artifacts.adapted, cards)
    if artifacts.to_label is not None:
        write_to_label(store, artifacts.to_label, context.draft.folder / TO_LABEL)
    (context.draft.folder / CARD).write_text(described, encoding="utf-8")
    context.draft.note(
        AdaptationFigures(
            **dict(found),
            findings=[adapted.verdict.finding],
            missing=list(content.missing),
            rows=counts,
            split=split,
            adapted=is_adapted,
            classifier=accuracy,
        )
    )


def counts_of(store: Store, artifacts: AdaptationArtifacts, *, reads_text: bool) -> dict[str, int]:
    """Return the numbers of sentences and labels for training and for evaluation; training on labels may read both."""
    manifest = store.manifest(artifacts.corpus)
    corpus, labels = manifest.figures_as(OwnCorpusFigures), manifest.figures_as(LabelCounts)
    return {
        "training sentences": corpus.sentences if reads_text else 0,
        "training labels": store.manifest(artifacts.pairs).figures_as(LabelPairsFigures).labels,
        "test labels": labels.test,
        "held-out sentences": corpus.held_out,
    }


def adaptation_page(title: str, adapted: Adapted, parts: Sequence[Part]) -> Page:
    """Return the page: the verdict and a chart of the differences above the sections."""
    from bsl.tasks.rendering.charts import mark_of, score_chart  # matplotlib

    marks = [
        mark_of(USES[use].title if use else f"{name}, {metric}", _MARKS[role], *figure)
        for use, name, metric, role, *figure in adapted.proof.select(
            "use", "evidence", "metric", "role", "difference", "ci_low", "ci_high"
        ).rows()
    ]
    chart = score_chart(marks, "Difference × 100 from the original encoder", line=0.0) if marks else None
    sentences = [f"{adapted.verdict.sentence} Exported: {adapted.exported}."]
    return Page.of_result(title, sentences, chart, parts, adapted.verdict.word)


def figure_parts(adapted: Adapted, missing: Sequence[str], weighing: pl.DataFrame, log: pl.DataFrame) -> list[Part]:
    """Return the sections on the figures before and after, and on training.

    `missing` are general sets that were not found; the tables are `weighing` and `training_log`.
    """
    from bsl.tasks.rendering.training_curves import folded_curves  # matplotlib

    absent = [Prose(f"Not evaluated because they are not available: {', '.join(missing)}.")] if missing else []
    table = Table.of("Figures × 100", proof_rows(adapted.proof, adapted.draws))
    return [
        Part("All figures", [Prose(_HELD_OUT), table, Prose(_DRAWN, note=True), *absent]),
        Part("Training", [Prose(adapted.training), *share_tables(weighing), *folded_curves(log)]),
    ]


def adapted_card(
    content: AdaptationContent, adapted: Adapted, checkpoint: CheckpointRef, more: Sequence[Part] = ()
) -> str:
    """Return the model card of the exported encoder as Markdown, with further sections `more`."""
    verdict, name = adapted.verdict, encoder_name(content.encoder)
    better = adapted.accepted or verdict.word == "BETTER"
    materials = [model_material("original encoder", content.encoder, content.base.licence)]
    if better:
        materials += _training_materials(content)
        if "round trips" in content.views:
            materials += [model_material("translation of views", model) for model in content.translators]
    unchanged = "The verdict on the trained encoder is not BETTER, so this is the original encoder, byte for byte."
    about = f"A sentence encoder: {adapted.exported}. {adapted.training if better else unchanged}"
    names = public_names(adapted.proof["evidence"])
    proof = adapted.proof.with_columns(pl.col("evidence").replace(names))
    page = Page(
        title=f"{name} adapted to {text_name(content.sources)}" if better else f"{name}, unchanged",
        word=verdict.word,
        sentence=with_public_names(verdict.sentence, names),
        lead=[Prose(f"{about} Compare its vectors by cosine.")],
        parts=[
            Part("Better and worse for", answer_blocks(proof, adapted.draws)),
            use_section(search="search" not in adapted.worse_uses),
            Part("Figures", [Table.of(_MEASURED, proof_rows(proof, adapted.draws))]),
            Part("Data", [Prose(line) for line in _data(content, adapted.split) if line]),
            *more,
            Part("Limits", [Prose(_LIMITS)]),
        ],
    )
    languages = dict.fromkeys([*content.base.languages, *(source.lang for source in content.sources if better)])
    base = hub_id(content.encoder) or content.base.base
    return card(page, materials, base, checkpoint, languages=list(languages))


def _data(content: AdaptationContent, split: str) -> list[str]:
    """Return sentences on the files: text, labels, and how these were split."""
    texts = ", ".join(dict.fromkeys(source.name for source in content.sources))
    labels = f"Labels: {stem_of(content.labels.path)} ({content.labels.kind})." if content.labels else ""
    return [f"Text: {texts}.", labels, split]


def _training_materials(content: AdaptationContent) -> list[Material]:
    own = [Material("sentences", source.name, OWN) for source in content.sources]
    if content.labels is None or "labels" not in content.views:
        return own
    materials = [Material("labels", stem_of(content.labels.path), OWN), *(own if content.rehearses_text else [])]
    if content.rehearsal:
        materials.append(Material("general sentences", content.rehearsal, data_licence(data_set(content.rehearsal))))
    return materials
