"""Change a setting of the whole process inside a block, and restore the caller's value afterwards."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")


@dataclass(eq=False)
class _Block(Generic[T]):
    value: T


class ProcessSetting(Generic[T]):
    """A setting that Python or a library has once per process.

    Blocks may be nested, and blocks of several threads may overlap in any order: the newest open block's value applies,
    and the last block that closes restores the value from before the first.

    Args:
        read: Return the current value.
        write: Set a value; called with values that `read` returned, and with those of the blocks.

    Example:
        >>> import csv
        >>> FIELDS = ProcessSetting(csv.field_size_limit, csv.field_size_limit)
        >>> before = csv.field_size_limit()
        >>> with FIELDS.set_to(1_000_000):
        ...     csv.field_size_limit()
        1000000
        >>> csv.field_size_limit() == before
        True
    """

    def __init__(self, read: Callable[[], T], write: Callable[[T], object]) -> None:
        self._read = read
        self._write = write
        self._lock = threading.RLock()  # reentrant: garbage collection may close a generator's block inside `write`
        self._original: list[T] = []
        self._open: list[_Block[T]] = []

    @contextmanager
    def set_to(self, value: T) -> Iterator[None]:
        """Set the value inside the block."""
        block = _Block(value)
        with self._lock:
            if not self._open:
                self._original = [self._read()]
            self._open.append(block)
            self._write(value)
        try:
            yield
        finally:
            with self._lock:
                self._open.remove(block)
                self._write(self._open[-1].value if self._open else self._original[0])
