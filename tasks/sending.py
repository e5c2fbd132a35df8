"""Models on their way to other machines: by their names, or as artifacts where only this machine has them."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final

from storage.embedded import EMBEDDED
from storage.manifest import Provenance
from storage.refs import ArtifactRef, CheckpointRef
from storage.weights import resolve_model, settings_of
from tasks.pretrained import resolve_named_model

if TYPE_CHECKING:
    from storage.store import Store
    from storage.weights import ResolvedModel
    from tasks.site import Site

_KIND: Final = "model"
_FOLDER: Final = "model"
_OWN: Final = "sha256:"  # how a folder's identity begins


def sent_model(store: Store, model: ResolvedModel) -> tuple[str, str | None]:
    """The name and revision by which another machine finds a model; a folder is published first.

    Args:
        store: which both machines share.
        model: as it was found here.
    """
    if not model.identity.startswith(_OWN):
        known, _, commit = model.identity.rpartition("@")
        return known, None if known.startswith(EMBEDDED) else commit
    key, _, graph = model.identity.removeprefix(_OWN).partition("/")
    ref, folder = ArtifactRef(kind=_KIND, key=key), settings_of(model.folder)
    if store.defect(ref) is not None:
        with store.draft(ref, Provenance(stage="sent_model", stage_version=1, config={})) as draft:
            shutil.copytree(folder, draft.folder / _FOLDER, ignore=shutil.ignore_patterns(".*"))
    return (f"{ref.path}/{model.folder.relative_to(folder).as_posix()}" if graph else ref.path), None


def received_model(site: Site, name: str, revision: str | None) -> ResolvedModel:
    """The model that `sent_model` named."""
    kind, _, path = name.partition("/")
    if kind != _KIND:
        return resolve_named_model(site, name, revision)
    key, _, graph = path.partition("/")
    return resolve_model(str(site.open_store().fetch(ArtifactRef(kind=kind, key=key)) / _FOLDER / graph))


def sent_encoder(store: Store, encoder: CheckpointRef | ResolvedModel) -> tuple[str, str | None]:
    """As `sent_model`; a checkpoint lies in the store that both machines share."""
    return (encoder.path, None) if isinstance(encoder, CheckpointRef) else sent_model(store, encoder)


def received_encoder(site: Site, name: str, revision: str | None) -> CheckpointRef | ResolvedModel:
    """The encoder that `sent_encoder` named."""
    kind, _, key = name.partition("/")
    return CheckpointRef(key=key) if kind == "checkpoint" else received_model(site, name, revision)
