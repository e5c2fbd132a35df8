"""A local Dask cluster for tests and benchmarks: a scheduler and worker processes."""

from collections.abc import Iterator
from contextlib import contextmanager

from distributed import LocalCluster


@contextmanager
def dask_cluster(workers: int = 2) -> Iterator[LocalCluster]:
    """Start single-threaded workers on a free port, without a dashboard."""
    # Port 0 takes a free port: the dashboard's default is 8787, on which two clusters would collide.
    unseen = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None, scheduler_kwargs=unseen
    ) as cluster:
        yield cluster
