"""What an artifact was made from: the manifests of its direct and indirect inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bsl.storage.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bsl.storage.artifacts.manifest import Manifest
    from bsl.storage.artifacts.refs import ArtifactRef
    from bsl.storage.artifacts.store import Store


def lineage(store: Store, refs: Iterable[ArtifactRef]) -> list[Manifest]:
    """Return the manifests of artifacts and of all their direct and indirect inputs, inputs first.

    A missing or unreadable input is skipped together with its own inputs.
    """
    manifests: dict[str, Manifest] = {}
    for ref in refs:
        _add(store, ref, manifests)
    return list(manifests.values())


def _add(store: Store, ref: ArtifactRef, manifests: dict[str, Manifest]) -> None:
    if ref.path in manifests:
        return
    try:
        manifest = store.manifest(ref)
    except StorageError:
        return
    for entry in manifest.provenance.inputs.values():
        _add(store, entry, manifests)
    manifests[ref.path] = manifest
