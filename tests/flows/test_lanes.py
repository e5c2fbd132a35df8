"""Lanes of a sweep are processes: they change no byte, die without stopping others, and end with the sweep."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flows.sweep.sweep import ablation
from tasks.stage.progress import listening
from tasks.stage.run_context import RunContext
from tests.servers import children, is_alive

pytestmark = pytest.mark.slow  # whole sweeps in processes

HERE = Path(__file__).parent
SECONDS = 120.0
OVER = {"training.lr": [3e-4, 1e-3]}


class Reader:
    """Progress listener that records its events and can run a callback when a stage begins."""

    def __init__(self, on_begin=lambda _: None):
        self.on_begin, self.told = on_begin, []

    def __call__(self, event, value):
        self.told.append((event, value))
        if event == "begins":
            self.on_begin(value)


def lanes_of(process):
    """Return the processes that run points of a sweep."""
    return [child for child in children(process) if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def site_in(folder):
    return RunContext(store=str(folder), device="cpu", threads=1)


def encoders(site):
    """Return each checkpoint's encoder files: checkpoint → path → SHA-256."""
    store = site.open_store()
    folders = {ref.key: store.fetch(ref) / "encoder" for ref in store.refs("checkpoint")}
    return {
        key: {
            str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*.*")
        }
        for key, folder in folders.items()
    }


@pytest.fixture(scope="module")
def swept(tmp_path_factory, alone):
    """Sweep two learning rates, with dropout; return number of lanes → run context, events, sweep."""
    found = {}
    for lanes in (1, 2):
        site = site_in(tmp_path_factory.mktemp("lanes") / str(lanes))
        with listening(reader := Reader()):
            found[lanes] = site, reader.told, ablation("tiny", OVER, 1, alone, lanes=lanes, site=site)
    return found


def test_two_lanes_produce_the_same_checkpoints_and_table(swept):
    one, two = (encoders(swept[lanes][0]) for lanes in (1, 2))
    assert len(one) == 2
    assert len({files["model.safetensors"] for files in one.values()}) == 2
    assert two == one
    tables = [site.open_store().scan(study).collect() for site, _, study in swept.values()]
    assert tables[0].equals(tables[1])


def test_progress_events_of_lane_processes_reach_the_listener(swept):
    def made(lanes):
        return sorted((name, step.ref.path) for name, step in swept[lanes][1] if name == "makes")

    assert made(2) == made(1)
    for lanes in (1, 2):
        assert sum(name == "tells" and said.endswith(": done") for name, said in swept[lanes][1]) == 2


def test_killed_lane_process_loses_only_its_own_seed(tmp_path, alone, caplog):
    killed = []

    def kill(step):
        if step.stage == "train" and (running := lanes_of(os.getpid())) and not killed:
            killed.append(running[0])
            os.kill(running[0], signal.SIGKILL)

    site = site_in(tmp_path)
    with listening(Reader(kill)):
        study = ablation("tiny", OVER, 2, alone, lanes=2, site=site)
    assert len(killed) == 1
    assert sorted(site.open_store().scan(study).collect()["seeds"].to_list()) == [1, 2]
    assert "has no figure: its process was ended by SIGKILL" in caplog.text
    again = ablation("tiny", OVER, 2, alone, lanes=2, site=site)
    assert site.open_store().scan(again).collect()["seeds"].to_list() == [2, 2]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_lane_processes_end_when_the_sweep_is_signalled(tmp_path, alone, environment, how):
    command = [sys.executable, str(HERE / "sweep_in_lanes.py"), json.dumps(alone), str(tmp_path / "store")]
    surroundings = {**environment, "PYTHONPATH": str(HERE.parents[1])}
    with subprocess.Popen(
        command, env=surroundings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as sweep:
        begun: set[str] = set()
        while len(begun) < 2:
            line = sweep.stdout.readline()
            assert line, sweep.stderr.read()
            begun |= {total for total in ("5000", "5001") if line.endswith(f" of {total}\n")}
        running = lanes_of(sweep.pid)
        sweep.send_signal(how)
        _, said = sweep.communicate(timeout=SECONDS)
    assert len(running) == 2
    assert sweep.returncode != 0
    end = time.monotonic() + SECONDS
    while any(map(is_alive, running)) and time.monotonic() < end:
        time.sleep(0.1)
    assert not any(map(is_alive, running))
    if how != signal.SIGKILL:
        assert "training stopped on request after step" in said
