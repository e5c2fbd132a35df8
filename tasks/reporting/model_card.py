"""What a model card says, gathered from a run's settings and what its stages measured."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from models.evaluation.signature import PRINTED
from storage.assets.catalog import embedded_manifest
from storage.assets.embedded import EMBEDDED
from storage.datasets.registry import DATASETS, MODEL_LICENCES
from tasks.rendering.score_tables import score_rows
from tasks.reporting.card import CardContent, Material
from tasks.reporting.card_header import Header, Measured

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from storage.artifacts.refs import CheckpointRef
    from tasks.settings import Phase, RunSettings

CARD: Final = "model-card.md"
UNDECLARED: Final = "not declared here"
_APART: Final = {"objective", "collapse"}  # settings of a training that have no line of their own
_HUB_ID: Final = re.compile(r"(?!checkpoint/|report/|embeddings/)[\w.-]+/[\w.-]+")


def folded_card(number: int) -> str:
    """File of the card of a report's encoder that took a transform in; they are numbered as in the stage's inputs."""
    return f"model-card-folded-{number}.md"


class CardSubject(NamedTuple):
    """The encoder that a card describes.

    Attributes:
        checkpoint: its artifact.
        pairs: rows that each phase trained on.
        max_length: tokens that it reads of a sentence.
        folded: which system it is, if it took the run's transform in.
    """

    checkpoint: CheckpointRef
    pairs: tuple[int, ...]
    max_length: int
    folded: str = ""


def card_content(
    title: str, settings: RunSettings, scores: pl.DataFrame, subject: CardSubject, verdict: str
) -> CardContent:
    """The card's content.

    Args:
        title: the run's title.
        settings: what decided the run.
        scores: the scores of all systems.
        subject: the encoder.
        verdict: whether training did the encoder good.
    """
    phases = list(zip(settings.phases, subject.pairs, strict=True))
    trainings = [phase.training for phase in settings.phases]
    last = trainings[-1] if trainings else None
    dev = settings.evaluation.dev if any(training.select != "last" for training in trainings) else None
    chosen = {**last.objective.model_dump(mode="json"), **last.model_dump(mode="json", exclude=_APART)} if last else {}
    column = subject.folded or settings.systems[-1]
    materials = tuple(_materials(settings))
    transform = settings.transform.name if subject.folded and settings.transform else ""
    return CardContent(
        header=Header(
            name=title,
            base=hub_id(settings.encoder.model),
            datasets=_hub_sets(settings),
            languages=_languages(settings),
            licences=[material.licence for material in materials],
            figures=[*measured(scores, column, dev)],
            tags=[transform] if transform else [],
        ),
        title=title,
        what=f"with the run's {transform}, fitted on its sentences, as last module" if transform else "",
        column=column,
        base=settings.encoder.model,
        pooling=settings.encoder.pooling,
        max_length=subject.max_length,
        trainings=tuple((phase.training.objective.name, rows, _kind_of(phase, settings)) for phase, rows in phases),
        settings=chosen,
        labels=settings.needs_labels,
        scored=settings.scored,
        dev=dev,
        scores=score_rows(scores),
        materials=materials,
        citations=(*dict.fromkeys(training.objective.citation for training in trainings), *_data_citations(settings)),
        checkpoint=subject.checkpoint.key,
        verdict=verdict,
    )


def measured(scores: pl.DataFrame, system: str, dev: str | None = None) -> Iterator[Measured]:
    """A system's printed figures with the Hub's names of their sets; those of the set that chose it are left out."""
    for row in scores.filter(PRINTED).filter(model=system).iter_rows(named=True):
        if f"{row['dataset']}/{row['split']}" == (dev or "").removeprefix(EMBEDDED):
            continue
        known = DATASETS.get(row["dataset"])
        yield Measured(
            row["dataset"],
            (known and known.hub_id) or row["dataset"],
            known.hub_config if known else None,
            known.revision if known else None,
            row["split"],
            row["metric"],
            row["protocol"],
            row["value"],
            row["ci_low"],
            row["ci_high"],
        )


def hub_id(model: str) -> str | None:
    """A model's name on the Hub; None for one in the package, in the store or in a folder."""
    return model if _HUB_ID.fullmatch(model) and not Path(model).exists() else None


def model_material(what: str, model: str) -> Material:
    """A model that went in, with its licence where that is declared."""
    if model.startswith(EMBEDDED):
        return Material(what, model, embedded_manifest(model.removeprefix(EMBEDDED)).licence)
    return Material(what, model, MODEL_LICENCES.get(model, UNDECLARED))


def _kind_of(phase: Phase, settings: RunSettings) -> str:
    """What the pairs of a training are."""
    if phase.pairs.scored:
        return f"scored pairs of {phase.pairs.scored}"
    return "annotated pairs" if phase.pairs.labelled else f"pairs of views ({', '.join(settings.augment.methods)})"


def _data_set(scored: str) -> str:
    """The data set of a split that is named with it."""
    return scored.rpartition("/")[0] or scored


def _data_sets(settings: RunSettings) -> list[str]:
    """Data sets whose sentences or scored pairs were learnt, in their order."""
    read = [source.dataset for source in settings.ingest.sources if source.dataset and not source.path]
    return list(dict.fromkeys([*read, *map(_data_set, settings.scored)]))


def _hub_sets(settings: RunSettings) -> list[str]:
    """Hub ids of the data sets."""
    names = _data_sets(settings)
    ids = [DATASETS[name].hub_id if name in DATASETS else hub_id(name) for name in names]
    return [name for name in dict.fromkeys(ids) if name]


def _languages(settings: RunSettings) -> list[str]:
    """Of the sentences, and of views that stay in another language."""
    sets = [(source, DATASETS.get(source.dataset or "")) for source in settings.ingest.sources]
    own = [source.lang or (known.lang if known else "en") for source, known in sets]
    views = settings.augment.translations if settings.phases else ()
    return sorted({*own, *(view.lang for view in views)})


def _materials(settings: RunSettings) -> Iterator[Material]:
    yield model_material("encoder at the start", settings.encoder.model)
    for teacher in dict.fromkeys(teacher.model for phase in settings.phases for teacher in phase.teachers):
        yield model_material("teacher", teacher)
    for source in settings.ingest.sources:
        yield Material("sentences", source.dataset or "files of your own", _data_licence(source.dataset))
    if not settings.phases:
        return  # no views are made
    for name in dict.fromkeys(settings.scored):
        yield Material("scored pairs", name, _data_licence(_data_set(name)))
    translators = {hop.model for view in settings.augment.translations for hop in view.hops}
    for model in sorted(translators):
        yield model_material("translation of views", model)
    for view in settings.augment.rewritings:
        yield from (model_material(view.purpose, model) for model, _ in view.models)
        if view.lexicon:
            yield Material(*view.lexicon)


def _data_licence(dataset: str | None) -> str:
    if dataset and dataset.startswith(EMBEDDED):
        return embedded_manifest(dataset.removeprefix(EMBEDDED)).licence
    return DATASETS[dataset].licence if dataset in DATASETS else UNDECLARED


def _data_citations(settings: RunSettings) -> list[str]:
    return sorted({DATASETS[name].citation for name in _data_sets(settings) if name in DATASETS})
