"""This program's log lines in the Prefect UI; the console has them from the root logger."""

from __future__ import annotations

import logging

from prefect.context import FlowRunContext, TaskRunContext
from prefect.logging.handlers import APILogHandler

_ROOTS = ("flows", "tasks", "models", "storage")


def show_logs() -> None:
    """Send what our modules log, from INFO up, to the page of the run; calling it again changes nothing.

    Prefect's own setting for this (PREFECT_LOGGING_EXTRA_LOGGERS) must be in every worker's environment and leaves the
    level at WARNING.
    """
    for name in _ROOTS:
        logger = logging.getLogger(name)
        logger.setLevel(logging.INFO)
        if not any(isinstance(handler, APILogHandler) for handler in logger.handlers):
            handler = APILogHandler()
            handler.addFilter(_in_run)
            logger.addHandler(handler)


def _in_run(_: logging.LogRecord) -> bool:
    """Whether there is a run whose page the line belongs on; the process may log before and after."""
    return FlowRunContext.get() is not None or TaskRunContext.get() is not None
