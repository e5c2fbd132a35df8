"""CPU seconds of commands that compute nothing: help, each mistake, and runs whose stages are all cached.

    python -m benchmarks.speed.bench_commands             help and mistakes; one CPU minute
    python -m benchmarks.speed.bench_commands --cached    also `run tiny` and `adapt` a second time; 5 CPU minutes

Each call runs in its own process and is repeated; the table has the least CPU seconds (user and system, of the process
and its children) and wall seconds. The exit code is 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple

REPEATS: Final = 3
GOALS: Final = {"help": 0.3, "mistake": 1.0, "cached": 3.0}  # CPU seconds
_ROWS: Final = 400


class Call(NamedTuple):
    """A call of `bsl`.

    Attributes:
        kind: Key of `GOALS`.
        words: The command and its arguments.
        code: Its exit code.
    """

    kind: str
    words: tuple[str, ...]
    code: int = 0


HELP: Final = [
    Call("help", ("--help",)),
    *(Call("help", (name, "--help")) for name in ("run", "adapt", "evaluate", "sweep", "export")),
]
MISTAKES: Final = [
    Call("mistake", ("run", "tinny"), 2),
    Call("mistake", ("run", "tiny", "--sed", "training.lr=1"), 2),
    Call("mistake", ("run", "tiny", "--set", "training.lrr=1"), 2),
    Call("mistake", ("adapt", "nowhere.csv"), 1),
    Call("mistake", ("adapt", "own.csv", "--encoder", "embedded:mini-sentense"), 1),
    Call("mistake", ("adapt", "own.csv", "--columns", "txt"), 1),
    Call("mistake", ("adapt", "own.csv", "--labels", "own.csv", "--label-column", "clas"), 1),
    Call("mistake", ("adapt", "own.csv", "--set", "training.lrr=1"), 2),
    Call("mistake", ("evaluate", "embedded:bert-mini", "--suite", "stz"), 2),
    Call("mistake", ("evaluate", "embedded:bert-mimi"), 1),
    Call("mistake", ("sweep", "momentun"), 2),
    Call("mistake", ("compare", "report/latest", "report/none"), 1),
]
CACHED: Final = [Call("cached", ("run", "tiny")), Call("cached", ("adapt", "own.csv", "--labels", "own.csv"))]


def seconds_of(call: Call, folder: Path) -> tuple[float, float]:
    """Run a call in a folder; return its CPU and wall seconds.

    Raises:
        RuntimeError: The exit code is another.
    """
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "bsl.flows.cli.main", *call.words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != call.code:
        raise RuntimeError(f"bsl {' '.join(call.words)}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def measure(calls: list[Call], folder: Path) -> bool:
    """Print a row for each call; return whether all goals are reached."""
    print("| command | CPU s | wall s | goal, CPU s |\n|---|--:|--:|--:|")
    reached = True
    for call in calls:
        cpu, wall = map(min, zip(*(seconds_of(call, folder) for _ in range(REPEATS)), strict=True))
        print(f"| `bsl {' '.join(call.words)}` | {cpu:.2f} | {wall:.2f} | {GOALS[call.kind]:g} |", flush=True)
        reached &= cpu <= GOALS[call.kind]
    return reached


def main() -> int:
    """Measure; return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cached", action="store_true", help="also measure cached runs")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [
            f"The {thing} of house {number} is old.,{thing}" for number in range(_ROWS) for thing in ("river", "engine")
        ]
        (folder / "own.csv").write_text("\n".join(["text,class", *rows]))
        os.environ["BSL_STORE"] = str(folder / "store")
        # Bytecode as in an installed package: the first of the repeats writes it.
        os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        calls = [*HELP, *MISTAKES]
        if asked.cached:
            for call in CACHED:
                print(f"bsl {' '.join(call.words)}: first run: {seconds_of(call, folder)[0]:.0f} CPU s", flush=True)
            calls += CACHED
        return 0 if measure(calls, folder) else 1


if __name__ == "__main__":
    sys.exit(main())
