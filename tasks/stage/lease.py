"""Protect the artifacts of a running process against garbage collection, with a lease that a thread renews."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
import uuid
from typing import TYPE_CHECKING, Final

from bsl.storage.artifacts.leases import EXPIRES, begin_lease, release, write_lease
from bsl.storage.errors import StoreWriteError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bsl.storage.artifacts.refs import ArtifactRef
    from bsl.storage.artifacts.store import Store


logger = logging.getLogger(__name__)


_RENEWAL: Final = EXPIRES.total_seconds() / 6
_BETWEEN_WRITES: Final = 1.0  # seconds; limits writes when thousands of shards are added one by one

_leases: dict[tuple[int, str], _RenewedLease] = {}
_opening: Final = threading.Lock()


def lease(store: Store, refs: Iterable[ArtifactRef], makes: ArtifactRef | None = None, *, begin: bool = True) -> None:
    """Protect artifacts against garbage collection until this process ends.

    Everything that any process makes or uses in the store from the first call on is protected too.

    Args:
        store: the store of the artifacts.
        refs: artifacts to use; the lease names them before the call returns.
        makes: an artifact that is made or found after the call; the lease may name it a second later.
        begin: if False, only extend an existing lease: a worker of a cluster lives longer than the run.
    """
    process = (os.getpid(), store.url)  # a forked process gets its own lease
    with _opening:
        if begin and process not in _leases:
            _leases[process] = _RenewedLease(store)
    if process in _leases:
        _leases[process].add(refs, makes)


def at_thread_end(call: Callable[[], object]) -> None:
    """Call a function when this process ends, before its thread pools shut down: an object store's client needs them.

    Where Python has no such hook, the call comes after them; a lease on an object store may then expire by itself.
    """
    getattr(threading, "_register_atexit", atexit.register)(call)


class _RenewedLease:
    """A lease that a thread renews until this process ends."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._name = uuid.uuid4().hex
        self._paths: set[str] = set()
        self._process = os.getpid()
        self._changed = threading.Event()
        self._writing = threading.Lock()
        self._released = False
        self._try(lambda: begin_lease(store, self._name))
        threading.Thread(target=self._renew_always, name="lease", daemon=True).start()
        at_thread_end(self._release)

    def add(self, refs: Iterable[ArtifactRef], makes: ArtifactRef | None) -> None:
        """Add artifacts and write the lease: at once for those to use, about a second later for one to make."""
        used, made = {ref.path for ref in refs}, {makes.path} if makes else set()
        with self._writing:
            new, is_new = used - self._paths, not used | made <= self._paths
            self._paths |= used | made
        if new:
            self._write()
        elif is_new:
            self._changed.set()

    def _renew_always(self) -> None:
        while not self._released:
            if self._changed.wait(_RENEWAL):
                time.sleep(_BETWEEN_WRITES)
                self._changed.clear()
            self._write()

    def _write(self) -> None:
        with self._writing:
            if self._released:
                return
            self._try(lambda: write_lease(self._store, self._name, self._paths))

    def _try(self, write: Callable[[], None]) -> None:
        try:
            write()
        except StoreWriteError as error:  # a read-only store, or a temporary fault until the next renewal
            logger.info("not protected against `bsl artifacts gc`: %s", error)

    def _release(self) -> None:
        if os.getpid() != self._process:
            return
        with self._writing:
            self._released = True
            try:
                release(self._store, self._name)
            except StoreWriteError as error:
                logger.info("the lease in %s was not removed and expires within an hour: %s", self._store.url, error)
