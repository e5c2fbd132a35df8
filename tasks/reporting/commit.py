"""The commit that this program was made from, as far as it is known."""

from __future__ import annotations

import json
import subprocess
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parents[1]
_SECONDS: Final = 5.0


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
