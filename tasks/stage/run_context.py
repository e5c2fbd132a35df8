"""Where a run happens. Nothing here changes a result but by rounding, so nothing here enters an artifact key.

The number of threads, of processes and the kind of device decide the order in which a sum is taken: one key may have
other bytes on another machine (with 1 or 2 threads weights differ by 2e-7). A precision that the device decides
(`models.runtime.precision`) is in keys.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from storage.artifacts.store import Store
from storage.filesystem.urls import Address, at_home


def _known(device: str) -> str:
    if re.fullmatch(r"auto|cpu|(cuda|mps|xpu)(:\d+)?", device) is None:
        raise ValueError(f"{device!r}, expected auto, cpu, cuda, or one of several such as cuda:1")
    return device


class RunContext(BaseModel):
    """The store, the mirror and the machine of a run."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, hide_input_in_errors=True)

    store: Address = ".bsl/store"
    """URL of the artifact store: a folder, `s3://bucket/prefix` or any other fsspec address."""
    mirror: Address | None = None
    """Folder `<name>/<split>.parquet` that stands in for the Hub; `BSL_DATA_MIRROR` on the command line."""
    cache: Annotated[str, AfterValidator(at_home)] | None = None
    """Local folder for copies of remote artifacts and Hub files."""
    device: Annotated[str, AfterValidator(_known)] = "auto"
    """`cpu`, `cuda`, `cuda:1`, …; `auto` takes a GPU if there is one."""
    threads: int | None = Field(None, ge=1)
    """CPU threads for torch; all cores, or OMP_NUM_THREADS, unless given."""

    translator_copies: int | None = Field(None, ge=1)
    """Copies of a translator that CTranslate2 has at work, each on a batch of its own: as many as there are threads for
    on a CPU, one a GPU unless given."""
    translator_threads: int = Field(1, ge=1)
    """CPU threads of each."""

    processes: int = Field(1, ge=1)
    """Processes that train one model, each on a GPU of its own (or on its part of the cores) with its share of every
    batch. The batch stays that of the recipe and the result is that of one process up to rounding; dropout, like on
    another device, draws other numbers."""
    cluster: str | None = None
    """Address of a Dask scheduler, such as `tcp://host:8786`, whose workers share the store. They make shards of
    translations and vectors, folds and seeds of fine-tuning, and points of sweeps. This process does, unless given."""
    pool: bool = False
    """Whether each point of a sweep is a run of deployment `bsl-pipeline/any`, whose workers share the store. A sweep
    that itself runs on that work pool takes a place of it."""
    save_every: int = Field(200, ge=1)
    """Training steps between two snapshots, from which a killed run goes on."""
    save_minutes: float | None = Field(10.0, gt=0)
    """Minutes after which a snapshot is due even so; None for by steps only."""
    keep_snapshots: int = Field(2, ge=1)
    """Snapshots kept of a run; two survive a damaged one."""

    def abroad(self) -> RunContext:
        """The store, mirror and kind of device, as other machines find them; the rest is each machine's own."""
        store = self.open_store()
        shared: dict[str, object] = {"store": str(store.local.absolute()) if store.local else self.store}
        if self.mirror:
            shared["mirror"] = str(Path(self.mirror).absolute()) if Path(self.mirror).exists() else self.mirror
        if self.device != "auto":
            shared["device"] = self.device.partition(":")[0]
        return RunContext.model_validate(shared)

    @property
    def local_cache(self) -> Path | None:
        """The cache as a path; None where each client keeps to its own."""
        return Path(self.cache) if self.cache else None

    def open_store(self) -> Store:
        """The store of this run."""
        return Store(self.store, self.local_cache)
