"""The machine and store of a run. These fields change results by rounding at most, so they are not in artifact keys.

The numbers of threads and processes and the device decide the order of summation. So an artifact may have other bytes
on another machine (with 1 or 2 threads, weights differ by 2e-7). The precision, which depends on the device
(`bsl.models.runtime.precision`), is in keys.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, ConfigDict, Field

from bsl.storage.filesystem.spelling import perhaps_path
from bsl.storage.filesystem.urls import Address, at_home, is_missing
from bsl.storage.record import Record

if TYPE_CHECKING:
    from bsl.models.training.snapshots import Execution
    from bsl.storage.artifacts.store import Store


def _known(device: str) -> str:
    if re.fullmatch(r"auto|cpu|(cuda|mps|xpu)(:\d+)?", device) is None:
        raise ValueError(
            f"unknown device {device!r} (expected auto, cpu, cuda, mps, xpu, or one of several such as cuda:1)"
        )
    return device


def _of_scheduler(address: str) -> str:
    if re.fullmatch(r"((tcp|tls|ucxx?|wss?)://)?[^/\s]+:\d{1,5}/?|inproc://.+", address) is None:
        raise ValueError(
            f"{address!r} is not the address of a Dask scheduler (expected tcp://HOST:PORT, such as tcp://HOST:8786)"
        )
    return address


def variable_of(field: str) -> str:
    """Return the environment variable of a field of `RunContext`."""
    return "BSL_DATA_MIRROR" if field == "mirror" else f"BSL_{field.upper()}"


class RunContext(Record):
    """Store, mirror, device and limits of a run."""

    model_config = ConfigDict(hide_input_in_errors=True)

    store: Address = ".bsl/store"
    """URL of the artifact store: a folder, s3://bucket/prefix or any other fsspec address."""
    mirror: Address | None = None
    """Folder with datasets (<name>/<split>.parquet) and models, read before the Hub."""
    cache: Annotated[str, AfterValidator(at_home)] | None = None
    """Local folder for copies of remote artifacts and Hub files."""
    device: Annotated[str, AfterValidator(_known)] = "auto"
    """Device to compute on: cpu, cuda, cuda:1 …; auto is a GPU if there is one."""
    threads: int | None = Field(None, ge=1)
    """CPU threads; by default OMP_NUM_THREADS or all cores."""

    translator_copies: int | None = Field(None, ge=1)
    """Copies of a translator that CTranslate2 runs in parallel, each on its own batch. By default one for
    each `translator_threads` threads of the CPU, and four on each GPU."""
    translator_threads: int = Field(1, ge=1)
    """CPU threads of each copy."""

    processes: int = Field(1, ge=1)
    """Processes that train one model, one per GPU. Each has its share of every batch (and of the cores). The batch size
    stays that of the recipe, and the result equals that of one process up to rounding; dropout masks differ, as on
    another device."""
    cluster: Annotated[Address, AfterValidator(_of_scheduler)] | None = None
    """Address of a Dask scheduler, for example tcp://HOST:8786. Its workers share the store. They compute shards of
    translations and vectors, folds and seeds of fine-tuning, and points of sweeps. By default this process does it."""
    pool: bool = False
    """Run each point of a sweep as a run of deployment bsl-pipeline/any. Its workers share the store. If the sweep
    itself runs on that work pool, it occupies one of its slots."""
    save_every: int = Field(200, ge=1)
    """Training steps between two snapshots, from which a killed run resumes."""
    save_minutes: float | None = Field(10.0, gt=0)
    """Maximum minutes between two snapshots; None (BSL_SAVE_MINUTES=none) counts steps only."""
    keep_snapshots: int = Field(2, ge=1)
    """Number of snapshots to keep; with two, one may be damaged."""

    def abroad(self) -> RunContext:
        """Return the context for other machines: store, mirror and kind of device; other fields are theirs."""
        store = self.open_store()
        shared: dict[str, object] = {"store": str(store.local.absolute()) if store.local else self.store}
        if self.mirror:
            shared["mirror"] = str(Path(self.mirror).absolute()) if Path(self.mirror).exists() else self.mirror
        if self.device != "auto":
            shared["device"] = self.device.partition(":")[0]
        return RunContext.model_validate(shared)

    def execution(self, work: Path) -> Execution:
        """Return how a training with snapshots in `work` executes, without what no run context has."""
        from bsl.models.training.snapshots import Execution  # imports torch

        return Execution(
            work=work, save_every=self.save_every, save_minutes=self.save_minutes, keep=self.keep_snapshots
        )

    def check_mirror(self) -> None:
        """Check that a mirror on this machine exists: without it, other data than the user's would be read.

        Raises:
            ValueError: There is no such folder; the message suggests the nearest path.
        """
        if self.mirror is not None and is_missing(self.mirror):
            found = f"mirror {self.mirror}: no such folder{perhaps_path(self.mirror)}"
            raise ValueError(f"{found}. Correct --mirror, or correct or unset {variable_of('mirror')}.")

    @property
    def local_cache(self) -> Path | None:
        """The cache as a path; None if each client uses its default."""
        return Path(self.cache) if self.cache else None

    def open_store(self) -> Store:
        """Open the store of this run."""
        from bsl.storage.artifacts.store import Store  # imports Polars, which help of commands does not need

        return Store(self.store, self.local_cache)
