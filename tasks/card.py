"""What a model card says, gathered from a run's configuration and what its stages measured."""

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from models.augmentation.config import AugmentConfig
from models.report.card import CardContent
from models.report.page import score_rows
from storage.declarations import DATASETS
from storage.embedded import EMBEDDED, embedded_manifest
from storage.refs import CheckpointRef

CARD = "model-card.md"
Config = Mapping[str, Any]
UNDECLARED = "not declared here"


def card_content(config: Config, scores: pl.DataFrame, checkpoint: CheckpointRef, pairs: int) -> CardContent:
    """The card's content.

    Args:
        config: a `PipelineConfig` as JSON values.
        scores: the scores of all systems.
        checkpoint: what the card is of.
        pairs: rows it was trained on.
    """
    encoder, training = config["encoder"], config["training"]
    objective = training["objective"]
    optimizer = {name: value for name, value in training.items() if name not in {"objective", "collapse"}}
    selected = training["select"] == "best" and config["evaluation"]["dev"]
    return CardContent(
        title=config["title"],
        base=encoder["model"],
        pooling=encoder["pooling"],
        max_length=encoder["max_length"],
        objective=objective["name"],
        settings={**objective, **optimizer},
        views=AugmentConfig.model_validate(config["augment"]).methods,
        labels=config["augment"]["entail"] is not None,
        pairs=pairs,
        dev=config["evaluation"]["dev"] if selected else None,
        scores=score_rows(scores),
        materials=list(_materials(config)),
        citations=sorted({work for source in config["ingest"]["sources"] if (work := _citation(source["dataset"]))}),
        checkpoint=checkpoint.key,
    )


def _materials(config: Config) -> Iterator[dict[str, str]]:
    yield _material("encoder at the start", config["encoder"]["model"])
    for source in config["ingest"]["sources"]:
        name = source["dataset"] or "files of your own"
        yield {"what": "sentences", "name": name, "licence": _data_licence(source["dataset"])}
    for model in sorted({hop["model"] for view in config["augment"]["views"] for hop in view["hops"]}):
        yield _material("translation of views", model)
    if config["augment"]["synonym"]:
        yield {"what": "synonyms", "name": "WordNet 3.0", "licence": "WordNet License"}
    if config["augment"]["mlm"]:
        yield _material("refilled tokens", config["augment"]["mlm"]["model"])


def _material(what: str, model: str) -> dict[str, str]:
    known = model.startswith(EMBEDDED)
    licence = embedded_manifest(model.removeprefix(EMBEDDED)).licence if known else UNDECLARED
    return {"what": what, "name": model, "licence": licence}


def _data_licence(dataset: str | None) -> str:
    if dataset and dataset.startswith(EMBEDDED):
        return embedded_manifest(dataset.removeprefix(EMBEDDED)).licence
    return DATASETS[dataset].licence if dataset in DATASETS else UNDECLARED


def _citation(dataset: str | None) -> str:
    return DATASETS[dataset].citation if dataset in DATASETS else ""
