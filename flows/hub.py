"""Hub repositories and commits that recipes and datasets read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bsl.flows.recipes import RECIPES
from bsl.flows.recipes.shared import ENCODERS, NO_COMMIT
from bsl.storage.assets.embedded import EMBEDDED
from bsl.storage.datasets.registry import DATASETS
from bsl.storage.sources.mirror import MODEL
from bsl.storage.sources.model_sources import is_made_here
from bsl.storage.sources.word_vectors import is_vectors_file
from bsl.tasks.embedding.encoders import STORED_VECTORS
from bsl.tasks.evaluation.kinds import frozen_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bsl.flows.config import PipelineConfig
    from bsl.storage.hub.faults import Kind
    from bsl.storage.sources.sources import SourceSpec


@dataclass(frozen=True)
class HubPin:
    """A Hub repository that a recipe or a dataset reads.

    A revision of None is the newest commit. The reason, if one is recorded, is why no commit is pinned.
    """

    kind: Kind
    name: str
    revision: str | None
    reason: str = ""


def pins() -> tuple[HubPin, ...]:
    """Return every Hub repository that a recipe or a declared dataset reads, each once."""
    unpinned = {encoder.model for encoder in ENCODERS.values() if encoder.revision is None}
    models = {model: None for make in RECIPES.values() for model in make().models() if is_hub_id(model[0])}
    sets = {(str(declared.hub_id), declared.revision): "" for declared in DATASETS.values() if declared.hub_id}
    archives = {declared.archive for declared in DATASETS.values() if declared.archive is not None}
    sets |= {(archive.hub_id, archive.revision): "" for archive in archives}
    return (
        *(HubPin("model", name, revision, NO_COMMIT if name in unpinned else "") for name, revision in models),
        *(HubPin("dataset", name, revision, "" if revision else reason) for (name, revision), reason in sets.items()),
    )


def needed(config: PipelineConfig) -> tuple[str | SourceSpec, ...]:
    """Return the models with their pins, the sources and the datasets that a run reads, each once.

    Excludes the user's files (`own_files`) and embedded assets; includes datasets that are not on the Hub.

    Raises:
        UnknownSuiteError: A suite or set of the evaluation is unknown.
    """
    models = [f"{MODEL}{name}@{revision}" if revision else f"{MODEL}{name}" for name, revision in config.models()
              if is_hub_id(name)]  # fmt: skip
    sources = [
        spec for spec in config.ingest.sources if spec.path is None and not f"{spec.dataset}".startswith(EMBEDDED)
    ]
    dev = [config.evaluation.dev] if config.phases and config.evaluation.dev else []
    words = [*frozen_names(config.evaluation.sets), *config.scored, *dev]
    sets = [name for name in (word.partition("/")[0] for word in words) if name in DATASETS]
    return tuple(dict.fromkeys([*models, *sources, *sets]))


def targets(names: Sequence[str], recipes: Sequence[PipelineConfig]) -> tuple[str | SourceSpec, ...]:
    """Return what `bsl mirror` fetches, each once: models and sources of recipes, and the named models and sets.

    Models get the revision that a recipe pins unless they have one. Without names and recipes, it is every split of
    every declared set.
    """
    if not names and not recipes:
        return tuple(f"{declared.name}/{split}" for declared in DATASETS.values() for split in declared.splits)
    pinned = {f"{MODEL}{model}": revision for make in RECIPES.values() for model, revision in make().models()}
    named = (f"{name}@{pinned[name]}" if pinned.get(name) else name for name in names)
    return tuple(dict.fromkeys([*(target for config in recipes for target in needed(config)), *named]))


def is_hub_id(model: str) -> bool:
    """Return whether a model's name is a Hub id: not an embedded asset, file, folder or artifact."""
    if model.startswith((EMBEDDED, ".", "/", "~")) or is_vectors_file(model):
        return False
    return not (is_made_here(model) or STORED_VECTORS.fullmatch(model) or Path(model).exists())
