"""What a model card says, gathered from a run's settings and what its stages measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from models.report.card import CardContent, Material
from models.report.page import score_rows
from storage.declarations import DATASETS
from storage.embedded import EMBEDDED, embedded_manifest

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from storage.refs import CheckpointRef
    from tasks.settings import RunSettings

CARD: Final = "model-card.md"
UNDECLARED: Final = "not declared here"


def card_content(
    title: str,
    settings: RunSettings,
    scores: pl.DataFrame,
    checkpoint: CheckpointRef,
    pairs: tuple[int, ...],
    max_length: int,
    verdict: str,
) -> CardContent:
    """The card's content.

    Args:
        title: the run's title.
        settings: what decided the run.
        scores: the scores of all systems.
        checkpoint: what the card is of.
        pairs: rows that each phase trained on.
        max_length: tokens that it reads of a sentence.
        verdict: whether training did the encoder good.
    """
    trainings, dev = [phase.training for phase in settings.phases], settings.evaluation.dev
    training = trainings[-1]
    optimizer = training.model_dump(mode="json", exclude={"objective", "collapse"})
    return CardContent(
        title=title,
        base=settings.encoder.model,
        pooling=settings.encoder.pooling,
        max_length=max_length,
        trainings=tuple((phase.objective.name, rows) for phase, rows in zip(trainings, pairs, strict=True)),
        settings={**training.objective.model_dump(mode="json"), **optimizer},
        views=settings.augment.methods,
        labels=settings.needs_labels,
        dev=dev if training.select == "best" else None,
        scores=score_rows(scores),
        materials=tuple(_materials(settings)),
        citations=(*dict.fromkeys(phase.objective.citation for phase in trainings), *_data_citations(settings)),
        checkpoint=checkpoint.key,
        verdict=verdict,
    )


def _materials(settings: RunSettings) -> Iterator[Material]:
    yield _model("encoder at the start", settings.encoder.model)
    for teacher in dict.fromkeys(phase.teacher.model for phase in settings.phases if phase.teacher):
        yield _model("teacher", teacher)
    for source in settings.ingest.sources:
        yield Material("sentences", source.dataset or "files of your own", _data_licence(source.dataset))
    translators = {hop.model for view in settings.augment.translations for hop in view.hops}
    for model in sorted(translators):
        yield _model("translation of views", model)
    for view in settings.augment.rewritings:
        yield from (_model(view.purpose, model) for model, _ in view.models)
        if view.lexicon:
            yield Material(*view.lexicon)


def _model(what: str, model: str) -> Material:
    known = model.startswith(EMBEDDED)
    return Material(what, model, embedded_manifest(model.removeprefix(EMBEDDED)).licence if known else UNDECLARED)


def _data_licence(dataset: str | None) -> str:
    if dataset and dataset.startswith(EMBEDDED):
        return embedded_manifest(dataset.removeprefix(EMBEDDED)).licence
    return DATASETS[dataset].licence if dataset in DATASETS else UNDECLARED


def _data_citations(settings: RunSettings) -> list[str]:
    names = {source.dataset for source in settings.ingest.sources}
    return sorted({DATASETS[name].citation for name in names if name in DATASETS})
