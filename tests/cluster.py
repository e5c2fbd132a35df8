"""A Dask cluster of this machine: a scheduler and workers in processes of their own, for a test or a bench."""

from collections.abc import Iterator
from contextlib import contextmanager

from distributed import LocalCluster


@contextmanager
def dask_cluster(workers: int = 2) -> Iterator[LocalCluster]:
    """Workers of one thread, at any free port, without a dashboard."""
    # Any free port: with none given the dashboard's is 8787, for which two clusters of one machine would meet.
    unseen = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None, scheduler_kwargs=unseen
    ) as cluster:
        yield cluster
