"""The model card of a run's encoder: description, scores, limits, training and licences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import polars as pl

from bsl.models.evaluation.verdict import STOPPED
from bsl.models.views.pairs import OWN_LABELS, REHEARSAL
from bsl.storage.datasets.registry import DATASETS
from bsl.tasks.rendering.blocks import Page, Part, Prose, Table
from bsl.tasks.rendering.score_tables import INTERVALS, score_rows
from bsl.tasks.reporting.card import (
    NO_CARD,
    OWN,
    BaseCard,
    Material,
    card,
    data_licence,
    data_set,
    hub_id,
    model_material,
    model_name,
    results_of,
    use_section,
)
from bsl.tasks.reporting.public_names import public_names, with_public_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bsl.models.evaluation.verdict import Verdict
    from bsl.models.training.config import TrainingConfig
    from bsl.storage.artifacts.refs import CheckpointRef
    from bsl.tasks.settings import Phase, RunSettings

_EXCLUDED: Final = {"objective", "collapse"}  # training settings without a row in the table
_MEASURED: Final = (
    "STS and AFS: correlation of cosines with human scores, over all pairs (all) or as the mean over the topics of AFS "
    "(unsupervised). Transfer: accuracy of a linear classifier on frozen vectors."
)
_LIMITS: Final = (
    "The figures show how well it orders the pairs of the sets above; other kinds of text can differ. Measure it on "
    "your own text with bsl evaluate.",
    "Cosines order pairs. A threshold for the cosines of another encoder does not apply to this one.",
    "Bias in the original encoder and in the sentences was neither measured nor removed.",
)


def folded_card(number: int) -> str:
    """Return the card's file name for an encoder with a folded transform, numbered as in the stage's inputs."""
    return f"model-card-folded-{number}.md"


class CardSubject(NamedTuple):
    """The encoder that a card describes.

    Attributes:
        checkpoint: its artifact.
        pairs: number of training pairs per phase.
        max_length: maximum number of tokens of a sentence.
        folded: name of the system, if the run's transform is folded into the encoder.
    """

    checkpoint: CheckpointRef
    pairs: tuple[int, ...]
    max_length: int
    folded: str = ""


def run_card(
    title: str,
    settings: RunSettings,
    scores: pl.DataFrame,
    subject: CardSubject,
    verdict: Verdict | None,
    base: BaseCard = NO_CARD,
) -> str:
    """Return the model card of a run's encoder as Markdown; `base` is of the original encoder."""
    names = public_names(scores["dataset"].unique())
    encoder, shown = settings.encoder.short_name, model_name(settings.encoder.model)
    scores = scores.with_columns(
        pl.col("dataset").replace(names), pl.col("model").str.replace(encoder, shown, literal=True)
    )
    trainings = [phase.training for phase in settings.phases]
    # A stopped training keeps its best checkpoint, whatever `select` says.
    stopped = verdict is not None and verdict.word == STOPPED
    dev = settings.evaluation.dev if stopped else settings.selecting_dev
    column = (subject.folded or settings.systems[-1]).replace(encoder, shown, 1)
    transform = settings.transform.name if subject.folded and settings.transform else ""
    measured = f"{INTERVALS}; this encoder's column is {column}. {_MEASURED}"
    works = dict.fromkeys([*(training.objective.citation for training in trainings), *_data_citations(settings)])
    page = Page(
        title=title,
        word=verdict.word if verdict else "",
        sentence=with_public_names(verdict.sentence, names) if verdict else "",
        lead=[Prose(_sentence(settings, subject, transform))],
        parts=[
            use_section(),
            Part("Figures", [Prose(measured), Table.of("Scores", score_rows(scores)), Prose(_labels(settings, dev))]),
            Part("Limits", [Prose(line) for line in _limits(settings, subject)]),
            Part("Training", _training(settings)),
            Part("Citation", [Prose(work) for work in works]),
        ],
    )
    return card(
        page,
        list(_materials(settings, base)),
        hub_id(settings.encoder.model) or base.base,
        subject.checkpoint,
        languages=list(dict.fromkeys([*base.languages, *_languages(settings)])),
        datasets=_hub_sets(settings),
        results=results_of(scores, column, dev),
        tags=[transform] if transform else [],
    )


def _sentence(settings: RunSettings, subject: CardSubject, transform: str) -> str:
    phases = [
        f"with objective {phase.training.objective.name} on {_read(phase.training, rows)} {_kind_of(phase, settings)}"
        for phase, rows in zip(settings.phases, subject.pairs, strict=True)
    ]
    trained = f", trained {', then '.join(phases)}" if phases else ""
    folded = f" The last module is {transform}, fitted on the sentences of the run." if transform else ""
    model, pooling = model_name(settings.encoder.model), settings.encoder.pooling
    encoder = f"{model}, {pooling} pooling, first {subject.max_length} tokens"
    return f"A sentence encoder: {encoder}{trained}.{folded} Compare its vectors by cosine."


def _read(training: TrainingConfig, rows: int) -> str:
    """Return the number of pairs; if the steps end within the first epoch, how many of them were read."""
    read = rows if training.max_steps is None else training.max_steps * training.batch_size
    return f"{rows:,}" if read >= rows else f"{read:,} of {rows:,}"


def _labels(settings: RunSettings, dev: str | None) -> str:
    """Return sentences on the labels that were used."""
    if not settings.phases:
        return "No labels were used."
    selection = "The checkpoint is the last step, selected without labels."
    if dev:
        selection = f"The checkpoint was selected by Spearman on {dev}, so figures on {dev} are not test results."
    pairs = "Pairs were selected by labels of natural language inference. " if settings.needs_labels else ""
    named = [*settings.scored, *(["your own file"] if settings.own_labels else [])]
    scored = f"Training used the labels of {', '.join(named)}. " if named else ""
    return f"{pairs}{scored}{selection}"


def _limits(settings: RunSettings, subject: CardSubject) -> Iterator[str]:
    """Yield the encoder's limits: length, languages, validity of its figures."""
    yield f"It reads only the first {subject.max_length} tokens of a sentence."
    languages = ", ".join(_languages(settings))
    yield f"Languages of the sentences: {languages}. Others were not tested, unless a set above is in them."
    yield from _LIMITS


def _training(settings: RunSettings) -> list[Table]:
    """Return the last training's objective and optimizer settings; an empty list without training."""
    if not settings.phases:
        return []
    last = settings.phases[-1].training
    shown = {**last.objective.model_dump(mode="json"), **last.model_dump(mode="json", exclude=_EXCLUDED)}
    return [Table.of("Settings", [{"setting": name, "value": value} for name, value in shown.items()])]


def _kind_of(phase: Phase, settings: RunSettings) -> str:
    """Return the kind of a training's pairs."""
    if phase.pairs.scored == OWN_LABELS:
        return "scored pairs of the labels in your own file"
    if phase.pairs.scored:
        return f"scored pairs of {phase.pairs.scored}"
    return "annotated pairs" if phase.pairs.labelled else f"pairs of views ({', '.join(settings.augment.methods)})"


def _data_sets(settings: RunSettings) -> list[str]:
    """Return the datasets of the sentences and scored pairs, in their order."""
    read = [source.dataset for source in settings.ingest.sources if source.dataset]
    return list(dict.fromkeys([*read, *map(data_set, settings.scored)]))


def _hub_sets(settings: RunSettings) -> list[str]:
    """Return the Hub ids of the datasets."""
    names = _data_sets(settings)
    ids = [DATASETS[name].hub_id if name in DATASETS else hub_id(name) for name in names]
    return [name for name in dict.fromkeys(ids) if name]


def _languages(settings: RunSettings) -> list[str]:
    """Return the languages of the sentences and of views that remain in another language."""
    sets = [(source, DATASETS.get(source.dataset or "")) for source in settings.ingest.sources]
    languages = [source.lang or (known.lang if known else "en") for source, known in sets]
    views = settings.augment.translations if settings.phases else ()
    return sorted({*languages, *(view.lang for view in views), *_languages_of_given(settings)})


def _languages_of_given(settings: RunSettings) -> Iterator[str]:
    """Yield the languages of the views from columns, which only the pairings name."""
    given = {view.method for view in settings.augment.given}
    phases = [phase.pairs for phase in settings.phases if not phase.pairs.labelled and phase.pairs.scored is None]
    for pairing in (pairing for pairs in phases for pairing in pairs.pairings):
        sides = ((pairing.view_1, pairing.lang_1), (pairing.view_2, pairing.lang_2))
        yield from (lang for view, lang in sides if view in given)


def _materials(settings: RunSettings, base: BaseCard) -> Iterator[Material]:
    yield model_material("original encoder", settings.encoder.model, base.licence)
    for teacher in dict.fromkeys(teacher.model for phase in settings.phases for teacher in phase.teachers):
        yield model_material("teacher", teacher)
    for source in settings.ingest.sources:
        licence = data_licence(source.dataset) if source.dataset else OWN
        yield Material("sentences", source.dataset or "your own files", licence)
    if not settings.phases:
        return  # without training, no views are made
    for name in dict.fromkeys(settings.scored):
        yield Material("scored pairs", name, data_licence(data_set(name)))
    if settings.own_labels:
        yield Material("labels", "your own file", OWN)
    if any(phase.training.objective.nullable for phase in settings.own_labels):
        yield Material("general sentences", REHEARSAL, data_licence(data_set(REHEARSAL)))
    translators = {hop.model for view in settings.augment.translations for hop in view.hops}
    for model in sorted(translators):
        yield model_material("translation of views", model)
    for view in settings.augment.rewritings:
        yield from (model_material(view.purpose, model) for model, _ in view.models)
        if view.lexicon:
            yield Material(*view.lexicon)


def _data_citations(settings: RunSettings) -> list[str]:
    return sorted({DATASETS[name].citation for name in _data_sets(settings) if name in DATASETS})
