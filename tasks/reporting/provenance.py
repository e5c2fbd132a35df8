"""Provenance of a page: the command, the commit of the program, and all artifacts behind a result."""

from __future__ import annotations

import json
import subprocess
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Annotated, Final

from bsl.storage.record import NotInKey, Record

HERE: Final = Path(__file__).resolve().parents[2]  # of a clone: its root, behind the link bsl/tasks
_SECONDS: Final = 5.0


class RunCommand(Record):
    """The command of a run, shown on its page; it does not affect the result."""

    command: Annotated[str, NotInKey] = ""
    """Command that repeats the run; empty if no single command does."""


def commit() -> str:
    """Return the commit of the clone or installed package, marked if files have changed, or why it is unknown."""
    try:
        return _of_clone() or _of_package() or "unknown: not a clone of the repository, nor installed from one"
    except (OSError, subprocess.SubprocessError):
        return _of_package() or "unknown: git failed"


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
