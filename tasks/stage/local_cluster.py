"""Worker processes of this machine: a Dask cluster that lives as long as a block.

Each process has its own random generators, threads, memory and GPU, so calls do not affect each other's results. Dask
starts a process that died again, and repeats its call; the processes end with this one, even after kill -9.
"""

from __future__ import annotations

import logging
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from distributed import Client, LocalCluster, WorkerPlugin

from bsl.tasks.stage.cluster import ClusterError
from bsl.tasks.stage.device import cores, device_of
from bsl.tasks.stage.sigterm import request_stop

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distributed import Worker

    from bsl.tasks.stage.run_context import RunContext

_THREADS: Final = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_START_S: Final = 300.0
_CARDS: Final = "CUDA_VISIBLE_DEVICES"
_NO_DASHBOARD: Final = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}


@contextmanager
def local_workers(site: RunContext, count: int) -> Iterator[tuple[str, RunContext]]:
    """Start worker processes on this machine; on GPUs, one card each.

    Args:
        site: Run context of this process; its threads are those of each worker, by default a share of the cores.
        count: Number of processes.

    Yields:
        Address of the scheduler, and the run context of the workers.

    Raises:
        ClusterError: No worker process starts.
    """
    threads = site.threads or max(1, cores() // count)
    environments = [dict.fromkeys(_THREADS, str(threads)) for _ in range(count)]
    changes: dict[str, Any] = {"threads": threads, "cluster": None}
    if device_of(site) == "cuda":
        cards = visible_cards()
        environments = [each | {_CARDS: cards[number % len(cards)]} for number, each in enumerate(environments)]
    with _Workers(environments) as cluster, Client(cluster, set_as_default=False) as client:
        client.register_plugin(_Calls())
        try:
            client.wait_for_workers(1, timeout=_START_S)  # calls wait for the others
        except TimeoutError as error:
            raise ClusterError(
                f"workers: no worker process started within {_START_S:.0f} s. Free some memory, or leave out --workers."
            ) from error
        yield cluster.scheduler_address, site.model_copy(update=changes)


def visible_cards() -> list[str]:
    """Return the GPUs that this process may use, as in CUDA_VISIBLE_DEVICES."""
    if given := os.environ.get(_CARDS):
        return given.split(",")
    import torch

    return [str(number) for number in range(torch.cuda.device_count())]


class _Workers(LocalCluster):
    """One process per environment, each with one thread for calls."""

    def __init__(self, environments: list[dict[str, str]]) -> None:
        self._environments = environments
        super().__init__(
            n_workers=0,
            threads_per_worker=1,
            processes=True,
            memory_limit=0,  # no limit: Dask would pause or restart a worker during a training
            dashboard_address=None,
            silence_logs=logging.ERROR,  # deaths of workers are logged with the names of their calls
            scheduler_kwargs=_NO_DASHBOARD,
        )
        self.scale(len(environments))

    def new_worker_spec(self) -> dict[int, dict[str, Any]]:
        """Add the environment of the next worker."""
        ((name, spec),) = super().new_worker_spec().items()
        environment = self._environments[int(name) % len(self._environments)]
        return {name: {**spec, "options": {**spec["options"], "env": environment}}}


class _Calls(WorkerPlugin):
    """Prepares a worker process, and lets its call save its state when the worker is stopped."""

    def setup(self, worker: Worker) -> None:  # noqa: ARG002 - passed by name
        """Send text that libraries print to stderr: it is not output of the command."""
        os.dup2(2, 1)

    def teardown(self, worker: Worker) -> None:  # noqa: ARG002
        """Ask the running call to save its state and stop."""
        request_stop()
