"""Prefect's result record of an artifact, and the lease on a running stage's artifacts."""

from __future__ import annotations

import logging
import os
import threading
import time
import uuid
from typing import TYPE_CHECKING, Final

from prefect.filesystems import WritableFileSystem
from prefect.results import ResultStore
from prefect.serializers import JSONSerializer

from storage.artifacts.leases import EXPIRES, release, write_lease
from storage.artifacts.refs import ArtifactRef
from storage.errors import ArtifactMissingError, StoreWriteError
from tasks.stage.run_context import RunContext

if TYPE_CHECKING:
    from collections.abc import Iterable

    from storage.artifacts.store import Store


logger = logging.getLogger(__name__)


class ManifestRecords(WritableFileSystem):
    """Prefect result storage for one artifact: its record can be read exactly if the artifact is intact."""

    _block_type_name = "Artifact manifests"

    site: RunContext
    ref: ArtifactRef

    def read_path(self, path: str, **_: bool) -> bytes:  # type: ignore[override] # Prefect calls it with _sync=True
        """Return the result record, made from the reference.

        Raises:
            ArtifactMissingError: the artifact is missing or damaged; Prefect treats this as a cache miss.
        """
        store = self.site.open_store()
        fault = store.defect(self.ref)
        if fault is None:
            store.used(self.ref)
            return ResultStore(serializer=JSONSerializer()).create_result_record(self.ref, key=path).serialize()
        if store.was_published(self.ref):
            logger.warning("making %s again: %s", self.ref, fault)
        raise ArtifactMissingError(fault)

    def write_path(self, path: str, content: bytes, **_: bool) -> None:  # type: ignore[override] # noqa: ARG002
        """Store the reference as JSON, to notice a lost artifact later; only the artifact itself decides a hit."""
        self.site.open_store().remember(self.ref)

    def _resolve_path(self, path: str) -> None:
        """Return None: a key is not a path. Prefect calls this for storage that is not saved on a server."""


_RENEWAL: Final = EXPIRES.total_seconds() / 6
_BETWEEN_WRITES: Final = 1.0  # seconds; limits writes when thousands of shards are added one by one

_leases: dict[tuple[int, str], _RenewedLease] = {}
_opening: Final = threading.Lock()


def lease(store: Store, refs: Iterable[ArtifactRef], *, begin: bool = True) -> None:
    """Protect artifacts against garbage collection until this process ends.

    Args:
        store: the store of the artifacts.
        refs: the artifacts; they need not exist yet.
        begin: if False, only extend an existing lease: a worker of a cluster lives longer than the run.
    """
    process = (os.getpid(), store.url)  # a forked process gets its own lease
    with _opening:
        if begin and process not in _leases:
            _leases[process] = _RenewedLease(store)
    if process in _leases:
        _leases[process].add(refs)


class _RenewedLease:
    """A lease that a thread renews until this process ends."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._name = uuid.uuid4().hex
        self._paths: set[str] = set()
        self._process = os.getpid()
        self._written = 0.0
        self._changed = threading.Event()
        self._writing = threading.Lock()
        self._released = False
        threading.Thread(target=self._renew_always, name="lease", daemon=True).start()
        # Release it before thread pools shut down: an object store's client needs them; `atexit` would be too late.
        threading._register_atexit(self._release)  # type: ignore[attr-defined]

    def add(self, refs: Iterable[ArtifactRef]) -> None:
        """Add artifacts and write the lease: at once, or about a second later if it was just written."""
        new = {ref.path for ref in refs}
        with self._writing:
            if new <= self._paths:
                return
            self._paths |= new
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
                write_lease(self._store, self._name, self._paths)
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
