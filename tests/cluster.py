"""A local Dask cluster for tests and benchmarks, and calls for it.

Workers import the module of a call's function, so the calls are here and not with tests, whose imports take seconds.
"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from distributed import LocalCluster

from bsl.models.errors import ModelError
from bsl.tasks.stage.run_context import RunContext

# Port 0 takes a free port: the dashboard's default is 8787, on which two clusters would collide.
UNSEEN = {
    "dashboard_address": None,
    "scheduler_kwargs": {"dashboard": False, "dashboard_address": "127.0.0.1:0"},
}


@contextmanager
def dask_cluster(workers: int = 2) -> Iterator[LocalCluster]:
    """Start single-threaded workers on a free port, without a dashboard."""
    with LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, **UNSEEN) as cluster:
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


def where(site: RunContext, number: int) -> tuple[int, str, int]:
    return number, os.environ["OMP_NUM_THREADS"], os.getpid()


def die(site: RunContext, number: int) -> int:
    """Die as call 2; the others take longer than it, so some wait behind it."""
    time.sleep(0.2 if number == 2 else 0.4)
    if number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def note_process(site: RunContext, folder: str, number: int) -> int:
    """Return when there is a file `go`, or at once as call 1; leave the process in a file for each attempt."""
    attempt = len(list(Path(folder).glob(f"{number}-*")))
    while number != 1 and not Path(folder, "go").exists():
        time.sleep(0.05)
    Path(folder, f"{number}-{attempt}").write_text(str(os.getpid()))
    return number


def wait_or_fail(site: RunContext, seconds: float) -> float:
    if seconds < 0:
        raise ModelError("the third")
    time.sleep(seconds)
    return seconds
