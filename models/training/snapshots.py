"""Training snapshots on disk: safetensors and JSON, written so that a kill at any moment costs no finished snapshot.

    <work>/step-00000200/{online,target,predictor,target_norm,optimizer,rng,best}.safetensors
                         state.json     step, log, best, and the sha256 of each file beside it

A snapshot is written into a temporary folder, flushed to disk, and renamed; one that is damaged later is passed over
for the one before it.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import math
import os
import shutil
import time
import uuid
from typing import TYPE_CHECKING

from safetensors.torch import load_file, save_file

from models.errors import DamagedSnapshotError, ResumeError
from models.training.processes import is_first
from models.training.state import TrainingState

if TYPE_CHECKING:
    from pathlib import Path

logger = logging.getLogger(__name__)

FORMAT = 1
PREFIX, UNFINISHED = "step-", "unfinished-"


class Saving:
    """When and where a run is saved: every so many steps, and every so many minutes where steps take long."""

    def __init__(self, folder: Path, steps: int, minutes: float | None, keep: int) -> None:
        self.folder = folder
        self._steps, self._keep = steps, keep
        self._seconds = math.inf if minutes is None else 60 * minutes
        self._saved = time.monotonic()

    def is_due(self, step: int) -> bool:
        """Whether a snapshot should follow this step."""
        return step % self._steps == 0 or time.monotonic() - self._saved >= self._seconds

    def save(self, state: TrainingState) -> None:
        """Save now."""
        save_snapshot(self.folder, state, self._keep)
        self._saved = time.monotonic()


def write_state(folder: Path, state: TrainingState) -> None:
    """Write a snapshot's files into `folder` (made if needed) and flush them; `state.json` comes last."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, tensors in sorted(state.tensors.items()):
        save_file(tensors, folder / f"{name}.safetensors")
        flush(folder / f"{name}.safetensors")
    head = {
        "format": FORMAT,
        "fingerprint": state.fingerprint,
        "step": state.step,
        "total": state.total,
        "best_dev": state.best_dev,
        "best_step": state.best_step,
        "files": {name: _sha256(folder / f"{name}.safetensors") for name in sorted(state.tensors)},
        "log": state.log,
    }
    (folder / "state.json").write_text(json.dumps(head, sort_keys=True) + "\n", encoding="utf-8")
    flush(folder / "state.json")


def read_state(folder: Path) -> TrainingState:
    """Read a snapshot back.

    Raises:
        DamagedSnapshotError: A file is missing, or does not hold what was written.
        ResumeError: The format is unknown.
        OSError: A file cannot be read now, which says nothing about the snapshot.
    """
    try:
        head = json.loads((folder / "state.json").read_text(encoding="utf-8"))
        if head["format"] != FORMAT:
            raise ResumeError(
                f"{folder}: snapshot format {head['format']}, expected {FORMAT}; go on with the version that wrote it, "
                "or delete the folder to train afresh"
            )
        for name, expected in head["files"].items():
            found = _sha256(folder / f"{name}.safetensors")
            if found != expected:
                raise DamagedSnapshotError(
                    f"{folder}/{name}.safetensors: sha256 {found[:12]}…, expected {expected[:12]}…; delete the folder"
                )
        return TrainingState(
            **{name: head[name] for name in ("fingerprint", "step", "total", "log", "best_dev", "best_step")},
            tensors={name: load_file(folder / f"{name}.safetensors") for name in head["files"]},
        )
    except (FileNotFoundError, ValueError, KeyError, TypeError) as error:
        raise DamagedSnapshotError(f"{folder}: not a complete snapshot ({error!r}); delete the folder") from error


def save_snapshot(work: Path, state: TrainingState, keep: int) -> Path:
    """Add a snapshot to the work folder by one atomic rename, then drop all but the newest `keep`.

    Two runs of the same training may share a work folder: each writes under a name of its own, and whose rename comes
    second drops its copy, which has the same content.
    """
    work.mkdir(parents=True, exist_ok=True)
    final = work / f"{PREFIX}{state.step:08d}"
    unfinished = work / f"{UNFINISHED}{state.step:08d}-{uuid.uuid4().hex}"
    try:
        write_state(unfinished, state)
        flush(unfinished)
        shutil.rmtree(final, ignore_errors=True)
        unfinished.rename(final)
        flush(work)
    except OSError as error:
        if error.errno not in {errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST}:
            raise
        logger.info("another run of this training saves in %s too; going on without this snapshot", work)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    for old in _snapshots(work)[keep:]:
        shutil.rmtree(old, ignore_errors=True)
    return final


def newest_snapshot(work: Path, fingerprint: str) -> TrainingState | None:
    """The newest intact snapshot of this run, or None.

    A damaged snapshot is removed with a warning, by the first process: it must look before the others do.

    Raises:
        ResumeError: The newest intact snapshot is of another run (other data, settings or first weights), or of an
            unknown format; or another process than the first meets a damaged one.
        OSError: A snapshot cannot be read now.
    """
    for folder in _snapshots(work):
        try:
            state = read_state(folder)
        except DamagedSnapshotError as error:
            if not is_first():
                raise
            logger.warning("removing a damaged snapshot: %s", error)
            shutil.rmtree(folder, ignore_errors=True)
            continue
        if state.fingerprint != fingerprint:
            raise ResumeError(
                f"{folder} is a snapshot (step {state.step} of {state.total}) of a run with other pairs, settings, dev "
                f"set or starting weights, expected this run's; give another work folder, or delete {work}"
            )
        return state
    return None


def _snapshots(work: Path) -> list[Path]:
    return sorted(work.glob(f"{PREFIX}*"), reverse=True)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def flush(path: Path) -> None:
    """Force a file's bytes, or a folder's entries, to disk: a rename alone may outlive the data it names."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
