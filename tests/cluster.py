"""A local Dask cluster for tests and benchmarks, and calls for it.

Workers import the module of a call's function, so the calls are here and not with tests, whose imports take seconds.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from distributed import LocalCluster

from models.errors import ModelError
from tasks.stage.run_context import RunContext


@contextmanager
def dask_cluster(workers: int = 2) -> Iterator[LocalCluster]:
    """Start single-threaded workers on a free port, without a dashboard."""
    # Port 0 takes a free port: the dashboard's default is 8787, on which two clusters would collide.
    unseen = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None, scheduler_kwargs=unseen
    ) as cluster:
        yield cluster


def double(site: RunContext, number: int) -> tuple[str | None, int]:
    return site.cluster, 2 * number


def slow(site: RunContext, folder: str, number: int) -> None:
    Path(folder, str(number)).touch()
    time.sleep(0.5)


def fail(site: RunContext, number: int) -> int:
    if number == 3:
        raise ModelError("the third")
    return number
