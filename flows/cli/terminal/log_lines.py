"""Log lines on this command's terminal: for people, or where Prefect's setting says so a JSON object each."""

from __future__ import annotations

import logging
import os
import re
import sys
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from rich.live import Live

_FORMATTER: Final = "PREFECT_LOGGING_HANDLERS_CONSOLE_FORMATTER"  # `json` is one of Prefect's own
# Prefect's own lines on this terminal, which name no stage, and bars of libraries; the UI has them all the same. Its
# services print what they could not send, such as a heartbeat while the machine was busy, though all goes on.
QUIET: Final = {
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_INTERNAL_LEVEL": "CRITICAL",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
}


def spinner(said: str) -> Live:
    """What is being waited for, on the error stream alone: rich's own status also takes standard output for itself."""
    from rich.console import Console
    from rich.live import Live
    from rich.spinner import Spinner

    turning = Spinner("dots", text=said, style="status.spinner")
    return Live(turning, console=Console(stderr=True), refresh_per_second=12.5, transient=True, redirect_stdout=False)


class _Printable(logging.Formatter):
    """A line in which a file's name or a text cannot command the terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, its control characters spelled out."""
        return printable(super().format(record))


class _Lines(logging.StreamHandler[TextIO]):
    """This command's own lines, on the error stream of the moment: a spinner's takes lines above it."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]  # as logging's own handler of last resort
        """The error stream as it is now."""
        return sys.stderr


def line_formatter() -> logging.Formatter:
    """The form of this command's own lines."""
    return _Printable("%(asctime)s %(levelname)s %(message)s", datefmt="%H:%M:%S")


def start_lines() -> None:
    """Show warnings. Lines as JSON are left to Prefect, which shows all on import unless something else does before."""
    if not _are_json():
        lines = _Lines()
        lines.setFormatter(line_formatter())
        logging.basicConfig(level=logging.WARNING, handlers=[lines])


def be_quiet() -> None:
    """Leave the terminal to a watcher, which shows the stages; call it before Prefect is imported."""
    if _are_json():
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
        return
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    for handler in logging.getLogger().handlers:
        if isinstance(handler, _Lines):
            handler.setLevel(logging.WARNING)
            handler.addFilter(_is_no_line_of_prefect)


def _is_no_line_of_prefect(record: logging.LogRecord) -> bool:
    """Prefect logs what ends a stage with a page of traceback, which the verb says in a line."""
    return record.levelno >= logging.CRITICAL or record.name.partition(".")[0] != "prefect"


def _are_json() -> bool:
    return os.environ.get(_FORMATTER) == "json"


_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all but tab and line feed


def printable(text: object) -> str:
    r"""Return a text with its control characters as escapes, such as `\x1b`; tabs and line feeds stay.

    Args:
        text: what is printed, or an object whose `str` is.
    """
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], str(text))
