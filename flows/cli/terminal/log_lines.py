"""Log lines on the terminal: plain text, or JSON objects if Prefect's setting selects them."""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING, Final, TextIO

from bsl.storage.filesystem.control_characters import visible
from bsl.storage.filesystem.secrets import shown

if TYPE_CHECKING:
    from rich.live import Live

_FORMATTER: Final = "PREFECT_LOGGING_HANDLERS_CONSOLE_FORMATTER"  # `json` is one of Prefect's formatters
_LEVEL: Final = "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"
# Hides Prefect's log lines, which name no stage, and the libraries' progress bars; the UI still shows the lines.
# Prefect also logs harmless failures, such as a late heartbeat on a busy machine.
QUIET: Final = {
    _LEVEL: "CRITICAL",
    "PREFECT_LOGGING_INTERNAL_LEVEL": "CRITICAL",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
}


def spinner(text: str) -> Live:
    """Return a spinner with a text, on standard error only; rich's `status` would also capture standard output."""
    from rich.console import Console
    from rich.live import Live
    from rich.spinner import Spinner

    dots = Spinner("dots", text=text, style="status.spinner")
    return Live(dots, console=Console(stderr=True), refresh_per_second=12.5, transient=True, redirect_stdout=False)


class _Printable(logging.Formatter):
    """Formatter that escapes control characters, which a file name or text may contain."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a log line with control characters escaped."""
        return printable(super().format(record))


class StderrLines(logging.StreamHandler[TextIO]):
    """Handler of this command's log lines on the current `sys.stderr`; a spinner replaces it to print above itself.

    Prefect removes handlers of the root logger from classes whose names begin with `_`.
    """

    def __init__(self) -> None:
        logging.Handler.__init__(self)
        self._printed: set[tuple[str, str, str]] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Print a line once: a run finds its sets when it is planned and again later, and loads its encoder often."""
        line = (record.name, str(record.msg), str(record.args))
        if line not in self._printed:
            self._printed.add(line)
            super().emit(record)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]  # as logging's own handler of last resort
        """The current standard error."""
        return sys.stderr


def line_formatter() -> logging.Formatter:
    """Return the formatter of this command's log lines."""
    return _Printable("%(asctime)s %(levelname)s %(message)s", datefmt="%H:%M:%S")


def start_lines() -> None:
    """Show warnings on the terminal; for JSON lines do nothing, so that Prefect configures logging on import."""
    if not _are_json():
        lines = StderrLines()
        lines.setFormatter(line_formatter())
        logging.basicConfig(level=logging.WARNING, handlers=[lines])


def be_quiet() -> None:
    """Hide Prefect's log lines, because the progress display shows the stages; call this before Prefect is imported."""
    if _are_json():
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
        return
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    if os.environ[_LEVEL] != QUIET[_LEVEL]:  # the user's choice
        leave_to_prefect()
    for handler in logging.getLogger().handlers:
        if isinstance(handler, StderrLines):
            handler.setLevel(logging.WARNING)
            handler.addFilter(_is_shown)


def leave_to_prefect() -> None:
    """Let Prefect print all log lines, with the names of its runs; call this before Prefect is imported.

    Prefect configures the root logger only if that has no handler.
    """
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, StderrLines)]:
        root.removeHandler(handler)


def _is_shown(record: logging.LogRecord) -> bool:
    """Filter out other packages' lines below CRITICAL.

    Prefect logs an error as a long traceback, and the command prints one line; Dask warns of workers that end slowly.
    """
    return record.levelno >= logging.CRITICAL or record.name.partition(".")[0] == "bsl"


def _are_json() -> bool:
    return os.environ.get(_FORMATTER) == "json"


def printable(text: object) -> str:
    r"""Return `str(text)` without passwords of URLs, and with control characters as escapes, such as `\x1b`.

    Tabs and line feeds stay.
    """
    return visible(shown(str(text)))
