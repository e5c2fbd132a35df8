"""Import this package's modules without changing the caller's process more than the imported libraries must."""

from __future__ import annotations

import gc
import logging
import random
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from bsl.storage.process_setting import ProcessSetting

if TYPE_CHECKING:
    from collections.abc import Iterator


def _collect(on: bool) -> None:
    (gc.enable if on else gc.disable)()


_COLLECTED: Final = ProcessSetting(gc.isenabled, _collect)


@contextmanager
def importing() -> Iterator[None]:
    """Import modules inside the block.

    - Garbage collection is off, which saves a sixth of the time of importing torch.
    - Prefect configures the root logger when it is imported; afterwards `logging.basicConfig` of the caller would do
      nothing. So its handlers are removed again. Those of the caller return: Prefect removes the ones without a
      formatter, and those of classes whose names begin with `_`. It also closes all handlers: files of the caller are
      opened again to append, where mode `w` would write no further line.
    - Some libraries draw from the caller's random generator.
    """
    root, drawn = logging.getLogger(), random.getstate()
    level, handlers = root.level, list(root.handlers)
    files = [handler for handler in _handlers() if isinstance(handler, logging.FileHandler) and handler.stream]
    try:
        with _COLLECTED.set_to(False):
            yield
    finally:
        random.setstate(drawn)
        added = [handler for handler in root.handlers if handler not in handlers and _is_prefects(handler)]
        for handler in added:
            root.removeHandler(handler)
        for handler in handlers:
            root.addHandler(handler)
        for file in files:
            if file.stream is None:
                file.mode = "a"
        if added:
            root.setLevel(level)


def _handlers() -> Iterator[logging.Handler]:
    """Yield the handlers of all loggers."""
    for logger in (logging.getLogger(), *logging.root.manager.loggerDict.values()):
        if isinstance(logger, logging.Logger):  # the others hold the place of a parent
            yield from logger.handlers


def _is_prefects(handler: logging.Handler) -> bool:
    return type(handler).__module__.partition(".")[0] == "prefect"
