"""Log lines on this command's terminal: for people, or where Prefect's setting says so a JSON object each."""

from __future__ import annotations

import logging
import os
from typing import Final

_FORMATTER: Final = "PREFECT_LOGGING_HANDLERS_CONSOLE_FORMATTER"  # `json` is one of Prefect's own
# Prefect's own lines on this terminal, which name no stage, and bars of libraries; the UI has them all the same.
QUIET: Final = {"PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}


def start_lines() -> None:
    """Show warnings. Lines as JSON are left to Prefect, which shows all on import unless something else does before."""
    if not _are_json():
        logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s", datefmt="%H:%M:%S")


def be_quiet() -> None:
    """Leave the terminal to a watcher, which shows the stages; call it before Prefect is imported."""
    if _are_json():
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
        return
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    logging.getLogger().handlers[0].setLevel(logging.WARNING)


def _are_json() -> bool:
    return os.environ.get(_FORMATTER) == "json"
