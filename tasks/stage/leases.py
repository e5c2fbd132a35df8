"""The lease of this process: artifacts that its stages use or make stay until it ends (`storage.artifacts.leases`)."""

from __future__ import annotations

import logging
import os
import threading
import time
from typing import TYPE_CHECKING, Final

from storage.artifacts.leases import EXPIRES, Lease
from storage.errors import StoreWriteError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from storage.artifacts.refs import ArtifactRef
    from storage.artifacts.store import Store

logger = logging.getLogger(__name__)

_RENEWAL: Final = EXPIRES.total_seconds() / 6
_BETWEEN_WRITES: Final = 1.0  # seconds; thousands of shards are added one by one

_leases: dict[tuple[int, str], _RenewedLease] = {}
_opening: Final = threading.Lock()


def lease(store: Store, refs: Iterable[ArtifactRef], *, begin: bool = True) -> None:
    """Protect artifacts against garbage collection until this process ends.

    Args:
        store: the store of the artifacts.
        refs: the artifacts; they need not exist yet.
        begin: False adds to the lease of a flow run only: a worker of a cluster lives on after the run.
    """
    own = (os.getpid(), store.url)  # a fork has its own
    with _opening:
        if begin and own not in _leases:
            _leases[own] = _RenewedLease(store)
    if own in _leases:
        _leases[own].add(refs)


class _RenewedLease:
    """A lease that a thread renews until this process ends."""

    def __init__(self, store: Store) -> None:
        self._lease = Lease(store)
        self._where = store.url
        self._process = os.getpid()
        self._written = 0.0
        self._changed = threading.Event()
        self._writing = threading.Lock()
        self._released = False
        threading.Thread(target=self._renew_always, name="lease", daemon=True).start()
        # Before thread pools shut down, without which an object store's client cannot connect; `atexit` is after.
        threading._register_atexit(self._release)  # type: ignore[attr-defined]

    def add(self, refs: Iterable[ArtifactRef]) -> None:
        """Add artifacts: at once, or within a second of the last write."""
        with self._writing:
            if not self._lease.add(refs):
                return
        if time.monotonic() - self._written < _BETWEEN_WRITES:
            self._changed.set()
        else:
            self._write()

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
            self._written = time.monotonic()
            try:
                self._lease.renew()
            except StoreWriteError as error:  # a read-only store; or one that answers again at the next renewal
                logger.info("not protected against `bsl artifacts gc`: %s", error)

    def _release(self) -> None:
        if os.getpid() != self._process:
            return
        with self._writing:
            self._released = True
            try:
                self._lease.release()
            except StoreWriteError as error:
                logger.info("the lease in %s ends within an hour: %s", self._where, error)
