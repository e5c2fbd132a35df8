"""Log records of this program: sent to the Prefect UI, with run, stage and artifact.

The console gets them from the root logger, as JSON if PREFECT_LOGGING_HANDLERS_CONSOLE_FORMATTER selects it.
"""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, Any

from prefect.logging.handlers import APILogHandler
from prefect.runtime import flow_run

from bsl.storage.filesystem.control_characters import visible
from bsl.tasks.stage.progress import current_step
from bsl.tasks.stage.ui import in_run

if TYPE_CHECKING:
    from collections.abc import Callable

_ROOT = "bsl"


def show_logs() -> None:
    """Send our modules' log records from INFO up to the run's page; calling it again changes nothing.

    Prefect's own setting for this (PREFECT_LOGGING_EXTRA_LOGGERS) must be set in every worker's environment and leaves
    the level at WARNING.
    """
    make = logging.getLogRecordFactory()
    if not isinstance(make, _Signed):
        logging.setLogRecordFactory(_Signed(make))
    logger = logging.getLogger(_ROOT)
    logger.setLevel(logging.INFO)
    if not any(isinstance(handler, APILogHandler) for handler in logger.handlers):
        handler = APILogHandler()
        handler.setFormatter(_Visible())
        handler.addFilter(lambda _: in_run())  # records outside a run have no page
        logger.addHandler(handler)


class _Visible(logging.Formatter):
    """Formatter that shows control characters, which a sentence or name may contain, as escapes."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a log line."""
        return visible(super().format(record))


class _Signed:
    """Log record factory that adds run, stage and artifact, also to records of libraries and Prefect.

    A filter would be needed on every handler: a logger's filters do not see the records of its child loggers.
    """

    def __init__(self, make: Callable[..., logging.LogRecord]) -> None:
        self._make = make

    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord:  # noqa: ANN401 - logging's
        record = self._make(*args, **kwargs)
        with contextlib.suppress(TypeError, ValueError, KeyError):  # logging reports these when it prints the record
            record.message = record.getMessage()  # Prefect's JSON has it only after another handler has set it
        step = current_step()
        record.run = flow_run.get_id()
        record.stage = step.stage if step else None
        record.artifact = step.ref.path if step else None
        return record
