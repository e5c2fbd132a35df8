"""What an artifact was made from, and those from what, as the manifests of the store say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from storage.artifacts.refs import ArtifactRef
from storage.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from storage.artifacts.manifest import Manifest
    from storage.artifacts.store import Store


@dataclass(frozen=True)
class Artifact:
    """An artifact as the page of a run shows it.

    Attributes:
        stage: what made it.
        system: whose vectors or figures it holds; empty for those of none.
        kind: its kind.
        key: its key.
        rows: of its tables.
        size: bytes.
        seconds: that making it took, now or when it was made.
        made: whether this run made it.
        inputs: `<kind>/<key>` of what it was made from.
    """

    stage: str
    system: str
    kind: str
    key: str
    rows: int
    size: int
    seconds: float
    made: bool
    inputs: Sequence[str]


def lineage(store: Store, refs: Iterable[ArtifactRef]) -> list[Manifest]:
    """The manifests of artifacts and of all that they were made from, inputs before what was made of them.

    An input that is gone, or no longer readable, is left out with what it was made from.
    """
    made: dict[str, Manifest] = {}
    for ref in refs:
        _add(store, ref, made)
    return list(made.values())


def _add(store: Store, ref: ArtifactRef, made: dict[str, Manifest]) -> None:
    if ref.path in made:
        return
    try:
        manifest = store.manifest(ref)
    except StorageError:
        return
    for entry in manifest.provenance.inputs.values():
        _add(store, ArtifactRef(kind=entry.kind, key=entry.key), made)
    made[ref.path] = manifest


def described(manifest: Manifest, run: str, systems: Mapping[str, str]) -> Artifact:
    """An artifact for people.

    Args:
        manifest: its manifest.
        run: what was made in this run is told from what was found made.
        systems: key of embeddings → whose they are.
    """
    origin = manifest.provenance
    named = origin.config.get("model")
    return Artifact(
        stage=origin.stage or manifest.kind,
        system=systems.get(manifest.key, named if isinstance(named, str) else ""),
        kind=manifest.kind,
        key=manifest.key,
        rows=manifest.rows,
        size=manifest.size,
        seconds=manifest.duration_s,
        made=bool(run) and origin.run == run,
        inputs=tuple(dict.fromkeys(f"{entry.kind}/{entry.key}" for entry in origin.inputs.values())),
    )
