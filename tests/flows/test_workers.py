"""Workers of a sweep change no byte, die without stopping others, and end with the sweep."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import dask
import pytest

from bsl.flows.sweep.sweep import ablation
from bsl.models.errors import ModelError
from bsl.tasks.stage import cluster
from bsl.tasks.stage.cluster import DeadWorkersError, on_cluster, outcomes_on_cluster
from bsl.tasks.stage.local_cluster import local_workers
from bsl.tasks.stage.run_context import RunContext
from tests.cluster import die, note_process, wait_or_fail, where
from tests.servers import children, is_alive

HERE = Path(__file__).parent
SECONDS = 60.0
OVER = {"training.lr": [3e-4, 1e-3, 2e-3]}


def workers_of(process):
    """Return the worker processes of a sweep."""
    return [child for child in children(process) if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def site_in(folder):
    return RunContext(store=str(folder), device="cpu", threads=1)


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory):
    """Start workers that several tests share, because each takes seconds to start; those that kill some come last."""
    folder = tmp_path_factory.mktemp("workers")
    site = RunContext(store=str(folder), device="cpu", cache=str(folder / "cache"), threads=3)
    few_deaths = dask.config.set({"distributed.scheduler.allowed-failures": 1})
    with few_deaths, local_workers(site, 2) as (address, of_workers):
        assert (of_workers.threads, of_workers.cache, of_workers.cluster) == (3, site.cache, None)
        yield address, of_workers


def test_local_workers_share_the_cores_and_keep_order(two_workers):
    found = list(on_cluster(*two_workers, where, [(number,) for number in range(6)]))
    assert [number for number, _, _ in found] == list(range(6))
    assert {threads for _, threads, _ in found} == {"3"}
    assert os.getpid() not in {process for _, _, process in found}


def test_outcomes_come_when_calls_end_and_errors_with_their_number(two_workers):
    ended = list(outcomes_on_cluster(*two_workers, wait_or_fail, [(3.0,), (0.0,), (-1.0,)], ahead=False))
    assert [number for number, _ in ended] == [1, 2, 0]
    assert isinstance(ended[1][1], ModelError)


def test_call_whose_workers_all_die_is_named_and_the_others_end(two_workers, caplog):
    """Dask blames all calls that a dead worker was sent, also those that only waited."""
    calls, names = [(number,) for number in range(1, 9)], [f"point {number}" for number in range(1, 9)]
    ended = dict(outcomes_on_cluster(*two_workers, die, calls, names, ahead=False))
    dead = ended.pop(1)
    assert isinstance(dead, DeadWorkersError)
    assert "died 2 times" in str(dead)
    assert ended == {number - 1: number for number in range(1, 9) if number != 2}
    deaths = [record.message.partition(". ")[0] for record in caplog.records if record.name == cluster.__name__]
    # A death also names the point before on that worker, if its result was still there; never those that waited.
    named = r"(point 1, )?point 2(, point \d)?: the worker process died \(killed, or out of memory\)"
    assert [bool(re.fullmatch(named, death)) for death in deaths] == [True, True]


def test_result_that_was_lost_with_its_worker_is_computed_again(two_workers, tmp_path):
    ended = outcomes_on_cluster(*two_workers, note_process, [(str(tmp_path), n) for n in (1, 2)])
    assert next(ended) == (0, 1)
    (tmp_path / "go").touch()
    end = time.monotonic() + SECONDS
    while not (tmp_path / "2-0").exists() and time.monotonic() < end:
        time.sleep(0.1)
    time.sleep(1)  # the client knows the end, and has not asked for the result
    os.kill(int((tmp_path / "2-0").read_text()), signal.SIGKILL)
    time.sleep(0.5)  # the client knows the loss
    assert list(ended) == [(1, 2)]
    assert (tmp_path / "2-1").exists()


@pytest.mark.slow
def test_two_workers_produce_the_same_artifacts(tmp_path, alone, contents):
    found = []
    for workers in (1, 2):
        site = site_in(tmp_path / str(workers))
        ablation("tiny", OVER, 1, alone, workers=workers, site=site)
        found.append(contents(site.open_store()))
    checkpoints = {digest for path, digest in found[0].items() if path.startswith("checkpoint/")}
    assert len(checkpoints) == 3
    assert found[1] == found[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "send"),
    [(signal.SIGKILL, os.kill), (signal.SIGTERM, os.kill), (signal.SIGINT, os.kill), (signal.SIGINT, os.killpg)],
    ids=["kill -9", "SIGTERM", "SIGINT", "Ctrl-C in a terminal"],
)
def test_workers_end_when_the_sweep_is_signalled(tmp_path, alone, environment, how, send):
    command = [sys.executable, str(HERE / "sweep_with_workers.py"), json.dumps(alone), str(tmp_path / "store")]
    surroundings = {**environment, "PYTHONPATH": str(HERE.parents[1])}
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(command, env=surroundings, stdout=log, stderr=log, start_new_session=True) as sweep,
    ):
        snapshots = {}
        end = time.monotonic() + 3 * SECONDS
        while len(snapshots) < 2 and time.monotonic() < end:
            time.sleep(0.5)
            assert sweep.poll() is None, (tmp_path / "log").read_text()
            snapshots = {path.parent for path in (tmp_path / "store").rglob("step-*")}
        running = workers_of(sweep.pid)
        send(sweep.pid, how)
        sweep.wait(timeout=SECONDS)
    assert len(running) == 2
    assert sweep.returncode != 0
    end = time.monotonic() + SECONDS
    while any(map(is_alive, running)) and time.monotonic() < end:
        time.sleep(0.1)
    assert not any(map(is_alive, running))
