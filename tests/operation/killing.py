"""Kill whole runs of `tiny` with signal 9 at random moments, and compare their results with an undisturbed run.

    python tests/operation/killing.py --kills 100 --seed 1
    python tests/operation/killing.py --kills 10 --typed

A life is one store: a run is started, one of its processes is killed, and it is started again, until a run ends by
itself or five were killed; a last run then goes to its end. The artifacts must be those of the undisturbed run, byte
for byte. No process may be alive, the temporary folder must be empty, and `gc` must leave no files of killed runs. At
the end no run may be Running in Prefect's database. The corpus is short and the encoder tiny, but all stages run, with
a translator and snapshots.

Runs are forks of this process, which has imported all modules, and share one server; with --typed each is a `bsl run`
with its own server.
"""

from __future__ import annotations

import argparse
import atexit
import json
import multiprocessing
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

from bsl.flows.prefect_server.server import listen, program  # noqa: E402
from tests.servers import children, free_port, is_alive, wait_until_healthy  # noqa: E402

BSL = (sys.executable, "-m", "bsl.flows.cli.main")
SECONDS = 400.0  # a command whose server is gone must end within this time
OLD = 2 * 86_400
LEFT = (".staging/*", ".scratch/*/*", ".trash/*")
VICTIMS = ("command", "command", "server", "both")
RUNNING = {"RUNNING", "PENDING", "CANCELLING"}
Digests = dict[str, str]


def settings(folder: Path) -> list[str]:
    """Return `--set` options with which a run takes all stages in seconds."""
    from bsl.flows.recipes import recipe
    from tests.tiny_encoder import write_tiny

    changes = {
        "ingest": {"corpus": {"limit": 40}},
        "augment": {"translations": [recipe("tiny").augment.translations[0].model_dump(mode="json")]},
        "pairs": {"pairings": [{"view_1": "original", "view_2": "bt-de"}]},
        "encoder": {"model": str(write_tiny(folder / "encoder")), "max_length": 24},
        "training": {"batch_size": 8, "epochs": 4, "max_steps": 12, "eval_every": 12, "collapse": None},
        "evaluation": {"bootstrap": {"resamples": 100}, "sets": ["embedded:stsb/test"]},
    }
    return [word for name, value in changes.items() for word in ("--set", f"{name}={json.dumps(value)}")]


class Typed:
    """`bsl run tiny` as a user types it, with its own server."""

    def __init__(self, folder: Path, words: list[str]) -> None:
        (folder / "tmp").mkdir(exist_ok=True, parents=True)
        kept = {name: text for name, text in os.environ.items() if not name.startswith(("PREFECT_", "BSL_"))}
        with (folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*BSL, "run", "tiny", *words],
                env=kept | own_settings(folder), cwd=folder, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        self.pid = self._process.pid

    def server(self) -> list[int]:
        return children(self.pid)[:1]

    def wait(self, seconds: float) -> int | None:
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None


class Forked:
    """The same command as a fork of this process; its server outlives it, and is started again after a kill."""

    port = 0
    serving: subprocess.Popen[bytes] | None = None

    def __init__(self, folder: Path, words: list[str]) -> None:
        (folder / "tmp").mkdir(exist_ok=True, parents=True)
        self.serve(folder)
        start = multiprocessing.get_context("fork").Process(target=self._run, args=(folder, words))
        start.start()
        self._process, self.pid = start, int(start.pid or 0)

    @classmethod
    def serve(cls, folder: Path) -> None:
        """Start the server unless it runs, always on the same port: Prefect reads its address only once."""
        if cls.serving is not None and cls.serving.poll() is None:
            return
        cls.port = cls.port or free_port()
        home = folder / ".bsl" / "prefect"
        home.mkdir(parents=True, exist_ok=True)
        os.environ |= {"PREFECT_HOME": str(home), "PREFECT_SERVER_ANALYTICS_ENABLED": "false"}
        with (folder / "log").open("ab") as log, listen(cls.port) as listening:
            cls.serving = subprocess.Popen(
                program(listening),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=[listening.fileno()],
            )
        os.environ["PREFECT_API_URL"] = f"http://127.0.0.1:{cls.port}/api"
        wait_until_healthy(os.environ["PREFECT_API_URL"])

    def server(self) -> list[int]:
        return [self.serving.pid] if self.serving else []

    def wait(self, seconds: float) -> int | None:
        self._process.join(seconds)
        return self._process.exitcode

    @staticmethod
    def _run(folder: Path, words: list[str]) -> None:
        os.setsid()
        os.chdir(folder)
        os.environ |= own_settings(folder)
        tempfile.tempdir = None
        log = os.open(folder / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.dup2(log, 1)
        os.dup2(log, 2)
        from bsl.flows.cli.main import main

        code = main(["run", "tiny", *words])
        atexit._run_exitfuncs()  # Prefect sends its last events here; `os._exit` would skip them
        os._exit(code)


def own_settings(folder: Path) -> dict[str, str]:
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

    def __init__(self, folder: Path, words: list[str], way: type[Typed | Forked]) -> None:
        self.folder, self.words, self.way = folder, words, way
        self.store = folder / ".bsl" / "store"
        self._seen: set[int] = set()

    def finish(self) -> float:
        """Run to the end; return the seconds."""
        run = self.way(self.folder, self.words)
        began = time.monotonic()
        if run.wait(2 * SECONDS) != 0:
            raise AssertionError(self.log())
        return time.monotonic() - began

    def killed(self, after: float, victim: str) -> bool:
        """Start a run and kill a process of it; return False if the run ended before."""
        run = self.way(self.folder, self.words)
        code = run.wait(after)
        if code is not None:
            if code:
                raise AssertionError(self.log())
            return False
        self._seen |= {run.pid, *children(run.pid)}
        for process in {"command": [run.pid], "server": run.server(), "both": [run.pid, *run.server()]}[victim]:
            os.kill(process, signal.SIGKILL)
        if victim != "command" and Forked.serving is not None:
            Forked.serving.wait()  # else the next run takes it for a live server
        if run.wait(SECONDS) is None:
            raise AssertionError(f"{victim} was killed {SECONDS:.0f} s ago and the run goes on: {self.log()}")
        return True

    def log(self) -> str:
        return (self.folder / "log").read_text()[-6000:]

    def forget(self) -> None:
        """Delete store, cache and temporary folder, to begin a new life."""
        for place in (self.store, self.folder / "cache", self.folder / "tmp"):
            shutil.rmtree(place, ignore_errors=True)

    def digests(self) -> Digests:
        """Return the digest of each artifact; without polars, whose threads a fork lacks."""
        from bsl.storage.artifacts.manifest import parse_manifest
        from bsl.storage.artifacts.refs import ArtifactRef
        from bsl.storage.filesystem.digests import describe_files

        made = {}
        for path in self.store.rglob("manifest.json"):
            kind, key = path.parent.parent.relative_to(self.store).as_posix(), path.parent.name
            if kind.startswith(".") or kind == "model":
                continue
            manifest = parse_manifest(path.read_bytes(), str(path), ArtifactRef(kind=kind, key=key))
            assert manifest.files == describe_files(path.parent), path
            made[manifest.ref.path] = manifest.digest
        return made

    def faults(self, expected: Digests) -> list[str]:
        """Return the differences from an undisturbed run."""
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

    def unended(self) -> list[str]:
        """Return the runs that the database lists as not ended."""
        with closing(sqlite3.connect(self.folder / ".bsl" / "prefect" / "prefect.db")) as database:
            rows = [
                (table, state)
                for table in ("flow_run", "task_run")
                for (state,) in database.execute(f"SELECT state_type FROM {table}")
            ]
        return [f"{count} × {table} {state}" for (table, state), count in Counter(rows).items() if state in RUNNING]

    def left_by_gc(self) -> list[str]:
        """Return files of killed runs that are still in the store after `gc` two days later."""
        folders = [folder for pattern in LEFT for folder in self.store.glob(pattern)]
        for path in [path for folder in folders for path in (folder, *folder.rglob("*"))]:
            os.utime(path, (time.time() - OLD,) * 2)
        gc = ["artifacts", "gc", "--older-than", "1d", "--delete", "--store", str(self.store)]
        kept = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run([*BSL, *gc], env=kept, cwd=self.folder, capture_output=True, text=True)
        failed = [f"gc failed: {done.stderr}"] if done.returncode else []
        return failed + [f"{path} outlives gc" for pattern in LEFT for path in self.store.glob(pattern)]


def kill_lives(folder: Path, kills: int, seed: int, way: type[Typed | Forked]) -> tuple[Counter[str], list[str]]:
    """Kill as often as asked, at most five times per life; return the number of kills by victim, and the faults."""
    dice = random.Random(seed)
    words = settings(folder)
    house, done, faults = Household(folder / "house", words, way), Counter[str](), list[str]()
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
    if Forked.serving is not None:
        Forked.serving.kill()
        Forked.serving.wait()
    if way is Forked:
        Household(house.folder, words, Typed).finish()  # as the only user it ends runs marked as running
    return done, faults + house.unended()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    parser.add_argument("--typed", action="store_true", help="each run is a command with a server of its own")
    arguments = parser.parse_args()
    way = Typed if arguments.typed else Forked
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # else threads that wait for each other starve
    if "prefect" in sys.modules:
        raise RuntimeError("Prefect has read its settings before a server's address stood there")
    folder = Path(tempfile.mkdtemp())  # a TemporaryDirectory would be deleted by the first fork that ends
    try:
        if way is Forked:
            Forked.serve(folder / "house")
            import bsl.models.training.loop
            import bsl.models.translation.loading  # noqa: F401
        done, faults = kill_lives(folder, arguments.kills, arguments.seed, way)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"seed {arguments.seed}: {done.total()} kills {dict(done)}, faults: {'; '.join(faults) or 'none'}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
