"""Where a page comes from: the command, the commit of the program, and the artifacts that a result was made from."""

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
    """The command of a run, for its page; it decides nothing of the result."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    command: Annotated[str, NotInKey] = ""
    """The command that starts the run again; empty where no single command does."""


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


def commit() -> str:
    """The commit of the clone or of the installed package; says so if files have changed since, or it is unknown."""
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
    """The commit that pip recorded when it installed the package (PEP 610)."""
    try:
        origin = json.loads(distribution("bsl-pipeline").read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        return ""
    return str(origin.get("vcs_info", {}).get("commit_id", ""))


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
