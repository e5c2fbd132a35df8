"""This program's log lines: shown in the Prefect UI, marked with run, stage and artifact; warnings are counted.

The console has them from the root logger; as JSON where PREFECT_LOGGING_HANDLERS_CONSOLE_FORMATTER says so.
"""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, Any

from prefect.logging.handlers import APILogHandler
from prefect.runtime import flow_run

from tasks.stage.metrics import count_record, current_step
from tasks.stage.ui_page import in_run

if TYPE_CHECKING:
    from collections.abc import Callable

_ROOTS = ("flows", "tasks", "models", "storage")


class _Warnings(logging.Handler):
    """Counts what operators look for first."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        count_record(record)


def show_logs() -> None:
    """Send what our modules log, from INFO up, to the page of the run; calling it again changes nothing.

    Prefect's own setting for this (PREFECT_LOGGING_EXTRA_LOGGERS) must be in every worker's environment and leaves the
    level at WARNING.
    """
    make = logging.getLogRecordFactory()
    if not isinstance(make, _Signed):
        logging.setLogRecordFactory(_Signed(make))
    for name in _ROOTS:
        logger = logging.getLogger(name)
        logger.setLevel(logging.INFO)
        if not any(isinstance(handler, APILogHandler) for handler in logger.handlers):
            handler = APILogHandler()
            handler.addFilter(lambda _: in_run())  # the process may log before and after, where there is no page
            logger.addHandler(handler)
            logger.addHandler(_Warnings())


class _Signed:
    """Makes records that know their run, stage and artifact, libraries' and Prefect's among them.

    A filter would have to stand on every handler: those of a logger do not see what loggers below it pass on.
    """

    def __init__(self, make: Callable[..., logging.LogRecord]) -> None:
        self._make = make

    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord:  # noqa: ANN401 - logging's
        record = self._make(*args, **kwargs)
        with contextlib.suppress(TypeError, ValueError, KeyError):  # which logging reports where it prints the line
            record.message = record.getMessage()  # Prefect's JSON has it only where another handler came before
        step = current_step()
        record.run = flow_run.get_id()
        record.stage = step.stage if step else None
        record.artifact = step.ref.path if step else None
        return record
