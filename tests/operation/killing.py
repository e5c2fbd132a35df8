"""Kill whole runs of `tiny` with signal 9 at random moments, and compare their results with an undisturbed run.

    python tests/operation/killing.py --kills 100 --seed 1

A life is one store: a run is started, one of its processes is killed, and it is started again, until a run ends by
itself or five were killed; a last run then goes to its end. The artifacts must be those of the undisturbed run, byte
for byte. No process may be alive, the temporary folder must be empty, and `gc` must leave no files of killed runs. At
the end no run may be Running in Prefect's database. The corpus is short and the encoder tiny, but all stages run, with
a translator and snapshots. Each run is a `bsl run` with its own server.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bsl.flows.recipes import recipe  # noqa: E402
from bsl.storage.artifacts.store import Store  # noqa: E402
from tests.servers import children, is_alive  # noqa: E402
from tests.tiny_encoder import write_tiny  # noqa: E402

BSL = (sys.executable, "-m", "bsl.flows.cli.main")
SECONDS = 400.0  # a command whose server is gone must end within this time
OLD = 2 * 86_400
LEFT = (".staging/*", ".scratch/*/*", ".trash/*")
VICTIMS = ("command", "command", "server", "both")
RUNNING = {"RUNNING", "PENDING", "CANCELLING"}
Digests = dict[str, str]


def settings(folder):
    """Return `--set` options with which a run takes all stages in seconds."""
    changes = {
        "ingest": {"corpus": {"limit": 40}},
        "augment": {"translations": [recipe("tiny").augment.translations[0].model_dump(mode="json")]},
        "pairs": {"pairings": [{"view_1": "original", "view_2": "bt-de"}]},
        "encoder": {"model": str(write_tiny(folder / "encoder")), "max_length": 24},
        "training": {"batch_size": 8, "epochs": 4, "max_steps": 12, "eval_every": 12, "collapse": None},
        "evaluation": {"bootstrap": {"resamples": 100}, "sets": ["embedded:stsb/test"]},
    }
    return [word for name, value in changes.items() for word in ("--set", f"{name}={json.dumps(value)}")]


class Run:
    """`bsl run tiny` as a user types it, with its own server."""

    def __init__(self, folder, words):
        (folder / "tmp").mkdir(exist_ok=True, parents=True)
        kept = {name: text for name, text in os.environ.items() if not name.startswith(("PREFECT_", "BSL_"))}
        with (folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*BSL, "run", "tiny", *words],
                env=kept | own_settings(folder), cwd=folder, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        self.pid = self._process.pid

    def server(self):
        return children(self.pid)[:1]

    def wait(self, seconds):
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None


def own_settings(folder):
    return {
        "PYTHONPATH": str(ROOT),
        "TMPDIR": str(folder / "tmp"),
        "BSL_CACHE": str(folder / "cache"),
        "BSL_DEVICE": "cpu",
        "BSL_SAVE_EVERY": "3",
        "OMP_NUM_THREADS": "1",
    }


class Household:
    """Folder in which runs are started: each life has a new store, the Prefect database stays."""

    def __init__(self, folder, words):
        self.folder, self.words = folder, words
        self.store = folder / ".bsl" / "store"
        self._seen: set[int] = set()

    def finish(self):
        run = Run(self.folder, self.words)
        began = time.monotonic()
        if run.wait(2 * SECONDS) != 0:
            raise AssertionError(self.log())
        return time.monotonic() - began

    def killed(self, after, victim):
        """Start a run and kill a process of it; return False if the run ended before."""
        run = Run(self.folder, self.words)
        code = run.wait(after)
        if code is not None:
            if code:
                raise AssertionError(self.log())
            return False
        self._seen |= {run.pid, *children(run.pid)}
        for process in {"command": [run.pid], "server": run.server(), "both": [run.pid, *run.server()]}[victim]:
            os.kill(process, signal.SIGKILL)
        if run.wait(SECONDS) is None:
            raise AssertionError(f"{victim} was killed {SECONDS:.0f} s ago and the run goes on: {self.log()}")
        return True

    def log(self):
        return (self.folder / "log").read_text()[-6000:]

    def forget(self):
        for place in (self.store, self.folder / "cache", self.folder / "tmp"):
            shutil.rmtree(place, ignore_errors=True)

    def digests(self):
        store = Store(str(self.store))
        return {ref.path: store.check(ref, every_byte=True).digest for ref in store.refs() if ref.kind != "model"}

    def faults(self, expected):
        end = time.monotonic() + 20
        while (alive := {process for process in self._seen if is_alive(process)}) and time.monotonic() < end:
            time.sleep(0.2)
        made = self.digests()
        return [
            *(f"{path} differs or is not there" for path in sorted(expected) if made.get(path) != expected[path]),
            *(f"{path} should not be" for path in sorted(made.keys() - expected.keys())),
            *(f"process {process} lives" for process in sorted(alive)),
            *(f"{path} was left" for path in (self.folder / "tmp").iterdir()),
            *self.left_by_gc(),
        ]

    def unended(self):
        with closing(sqlite3.connect(self.folder / ".bsl" / "prefect" / "prefect.db")) as database:
            rows = [
                (table, state)
                for table in ("flow_run", "task_run")
                for (state,) in database.execute(f"SELECT state_type FROM {table}")
            ]
        return [f"{count} × {table} {state}" for (table, state), count in Counter(rows).items() if state in RUNNING]

    def left_by_gc(self):
        """Return files of killed runs that are still in the store after `gc` two days later."""
        folders = [folder for pattern in LEFT for folder in self.store.glob(pattern)]
        for path in [path for folder in folders for path in (folder, *folder.rglob("*"))]:
            os.utime(path, (time.time() - OLD,) * 2)
        gc = ["artifacts", "gc", "--older-than", "1d", "--delete", "--store", str(self.store)]
        kept = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run([*BSL, *gc], env=kept, cwd=self.folder, capture_output=True, text=True)
        failed = [f"gc failed: {done.stderr}"] if done.returncode else []
        return failed + [f"{path} outlives gc" for pattern in LEFT for path in self.store.glob(pattern)]


def kill_lives(folder, kills, seed):
    """Kill as often as asked, at most five times per life; return the number of kills by victim, and the faults."""
    dice = random.Random(seed)
    words = settings(folder)
    house, done, faults = Household(folder / "house", words), Counter[str](), list[str]()
    seconds, expected = house.finish(), house.digests()
    assert expected
    print(f"seed {seed}: undisturbed {seconds:.1f} s, {len(expected)} artifacts", flush=True)
    while done.total() < kills:
        house.forget()
        for _ in range(min(5, kills - done.total())):
            after, victim = dice.uniform(0.0, seconds), dice.choice(VICTIMS)
            if not house.killed(after, victim):
                break
            done[victim] += 1
            print(f"  kill {done.total()}: {victim} after {after:.1f} s", flush=True)
        house.finish()
        life = house.faults(expected)
        print("  life ended:", "; ".join(life) or "as if nobody had been killed", flush=True)
        faults += life
    return done, faults + house.unended()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        done, faults = kill_lives(Path(folder), arguments.kills, arguments.seed)
    print(f"seed {arguments.seed}: {done.total()} kills {dict(done)}, faults: {'; '.join(faults) or 'none'}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
