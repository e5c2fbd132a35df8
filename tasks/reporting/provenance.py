"""Provenance of a page: the command, the commit of the program, and all artifacts behind a result."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import BaseModel, ConfigDict

from storage.artifacts.keys import NotInKey
from storage.artifacts.refs import ArtifactRef
from storage.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from storage.artifacts.manifest import Manifest
    from storage.artifacts.store import Store

HERE: Final = Path(__file__).parents[2]
_SECONDS: Final = 5.0


class RunCommand(BaseModel):
    """The command of a run, shown on its page; it does not affect the result."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    command: Annotated[str, NotInKey] = ""
    """Command that repeats the run; empty if no single command does."""


@dataclass(frozen=True)
class Artifact:
    """An artifact as the page of a run shows it.

    Attributes:
        stage: stage that made it.
        system: system of its vectors or figures; empty for other artifacts.
        kind: its kind.
        key: its key.
        rows: number of rows of its tables.
        size: size in bytes.
        seconds: time that the stage took to make it, in this run or an earlier one.
        made: whether this run made it.
        inputs: `<kind>/<key>` of its inputs.
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


def commit() -> str:
    """Return the commit of the clone or installed package, marked if files have changed, or why it is unknown."""
    try:
        return _of_clone() or _of_package() or "unknown: neither a clone nor installed from one"
    except (OSError, subprocess.SubprocessError):
        return _of_package() or "unknown: git cannot be asked"


def _of_clone() -> str:
    if not (HERE / ".git").exists():
        return ""
    head = _git("rev-parse", "HEAD")
    return f"{head} with changes" if _git("status", "--porcelain", "--untracked-files=no") else head


def _git(*words: str) -> str:
    command = ["git", "-C", str(HERE), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=True).stdout.strip()


def _of_package() -> str:
    """Return the commit that pip recorded at installation (PEP 610); empty without one."""
    try:
        origin = json.loads(distribution("bsl-pipeline").read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        return ""
    return str(origin.get("vcs_info", {}).get("commit_id", ""))


def lineage(store: Store, refs: Iterable[ArtifactRef]) -> list[Manifest]:
    """Return the manifests of artifacts and of all their direct and indirect inputs, inputs first.

    A missing or unreadable input is left out together with its own inputs.
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
    """Return an artifact as the page of a run shows it.

    Args:
        manifest: its manifest.
        run: id of this run, to distinguish new artifacts from cached ones.
        systems: key of embeddings → name of their system.
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
