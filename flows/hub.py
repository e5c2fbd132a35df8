"""Pinned Hub commits of recipes and datasets: list them, and compare each with its newest commit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from flows.recipes import RECIPES
from flows.recipes.shared import ENCODERS, NO_COMMIT
from storage.assets.embedded import EMBEDDED
from storage.datasets.registry import DATASETS
from storage.errors import SourceError
from storage.hub.models import model_files
from storage.hub.repositories import Repository, Snapshot
from storage.readers.formats import is_readable
from storage.sources.mirror import MODEL
from storage.sources.model_sources import is_made_here
from storage.sources.word_vectors import is_vectors_file
from tasks.embedding.encoders import TAUGHT
from tasks.evaluation.kinds import frozen_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flows.config import PipelineConfig
    from storage.hub.repositories import Kind
    from storage.sources.sources import SourceSpec


@dataclass(frozen=True)
class HubPin:
    """A Hub repository that a recipe or a dataset reads.

    Attributes:
        kind: Model or dataset.
        name: Hub id.
        revision: The commit to read; None for the newest.
        reason: Why no commit is pinned; empty if no reason is recorded.
    """

    kind: Kind
    name: str
    revision: str | None
    reason: str = ""


@dataclass(frozen=True)
class PinStatus:
    """A pin compared with the Hub.

    Attributes:
        pin: The pin.
        verdict: `same`, `moved` (a newer commit exists), `unpinned`, or `lacking` (the Hub does not serve it).
        newest: The newest commit; None if lacking.
        detail: The changed files in use, or the error.
    """

    pin: HubPin
    verdict: Literal["same", "moved", "unpinned", "lacking"]
    newest: str | None
    detail: str


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


def look(pin: HubPin) -> PinStatus:
    """Compare a pin with the newest commit of its repository."""
    try:
        newest = Repository(kind=pin.kind, name=pin.name).pinned(None)
        if pin.revision is None:
            return PinStatus(pin, "unpinned", newest, pin.reason or "no reason is recorded")
        if newest == pin.revision:
            return PinStatus(pin, "same", newest, "")
        changed = _changed(pin, newest)
    except SourceError as error:
        return PinStatus(pin, "lacking", None, error.finding)
    return PinStatus(pin, "moved", newest, ", ".join(changed) or "no file in use changed")


def _changed(pin: HubPin, newest: str) -> list[str]:
    """Return the files in use whose bytes differ between the pinned and the newest commit."""
    old, new = (Snapshot(kind=pin.kind, name=pin.name, commit=str(commit)).files() for commit in (pin.revision, newest))
    read = [model_files(files) if pin.kind == "model" else tuple(filter(is_readable, files)) for files in (old, new)]
    return [name for name in sorted({*read[0], *read[1]}) if old.get(name) != new.get(name)]


def unexplained(known: Sequence[HubPin]) -> list[HubPin]:
    """Return the pins without a commit and without a reason."""
    return [pin for pin in known if pin.revision is None and not pin.reason]


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


def is_hub_id(model: str) -> bool:
    """Return whether a model's name is a Hub id: not an embedded asset, file, folder or artifact."""
    if model.startswith((EMBEDDED, ".", "/", "~")) or is_vectors_file(model):
        return False
    return not (is_made_here(model) or TAUGHT.fullmatch(model) or Path(model).exists())
