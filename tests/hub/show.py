"""Print results with the stand-in Hub as Markdown tables: recipes by step, faults, layouts of encoders.

python -m tests.hub.show recipes [RECIPE …]   minutes to hours; exit code 1 if a cell is not green
python -m tests.hub.show recipes --no-worker [RECIPE …]   half of the time: no run by a deployment
python -m tests.hub.show faults               each fault of the Hub, with the line that a user reads
python -m tests.hub.show layouts              every layout's vectors compared with those of sentence-transformers
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from tests.hub.cluster import of_the_hub, prefect, server, worker
from tests.hub.server import StandInHub
from tests.servers import clients_of, free_port, runs_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.hub.journey import Journeys


def recipes(names: Sequence[str]) -> int:
    """Print recipes × steps, a row as soon as its recipe is done, and the faults at the end."""
    with tempfile.TemporaryDirectory() as place:
        folder, hub = Path(place), StandInHub()
        # Set before other imports: the Hub's client and Prefect read their settings only once.
        os.environ |= of_the_hub(hub, folder / "home") | clients_of(free_port(), folder / "prefect")
        os.environ |= runs_in(folder) | {
            "BSL_STORE": str(folder / "store"), "BSL_DEVICE": "cpu", "BSL_CACHE": str(folder / "cache"),
            "NLTK_DATA": str(folder / "nltk"),
        }  # fmt: skip
        from tests.hub.journey import Journeys
        from tests.hub.world import needs_the_hub, publish_all, write_own_files

        by_worker = "--no-worker" not in names
        names = [name for name in names if name != "--no-worker"] or needs_the_hub()
        publish_all(hub, names)
        files = write_own_files(folder)
        journeys = Journeys(hub, folder, files, anew=False)
        with server(folder), worker(folder, {"BSL_DATA_MIRROR": str(files)}) if by_worker else nullcontext():
            if by_worker:
                prefect("--no-prompt", "deploy", "--name", "any")
            else:
                del journeys.steps["deployment"]
            os.chdir(folder)
            return _travelled(journeys, names)


def _travelled(journeys: Journeys, names: Sequence[str]) -> int:
    faults = []
    _row("recipe", *journeys.steps)
    _row(*("---" for _ in range(len(journeys.steps) + 1)))
    for name in names:
        cells = {step: journeys.take(name, step) for step in journeys.steps}
        _row(name, *("NO" if cell.fault else f"ok, {cell.seconds:.0f} s" for cell in cells.values()))
        faults += [f"{name}, {step}:\n{cell.fault}" for step, cell in cells.items() if cell.fault]
    print(f"\n{len(names)} recipes, {len(names) * len(journeys.steps) - len(faults)} cells green, {len(faults)} not")
    print(*faults, sep="\n\n", file=sys.stderr)
    return 1 if faults else 0


def faults(_: Sequence[str]) -> int:
    """Print each fault with the line that a user reads."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        os.environ |= clients_of(free_port(), folder / "prefect") | {"OMP_NUM_THREADS": "1", "BSL_DEVICE": "cpu"}
        from tests.hub.faults import lines

        with server(folder):
            _row("the Hub", "the line that a user reads")
            _row("---", "---")
            for what, line in lines(folder):
                _row(what, line)
    return 0


def layouts(_: Sequence[str]) -> int:
    """Print the largest absolute difference of vectors, for each layout."""
    from tests.layouts import LAYOUTS, compared

    _row("layout", "width", "max abs diff", "of its export")
    _row("---", "---", "---", "---")
    worst = 0.0
    for name in LAYOUTS:
        with tempfile.TemporaryDirectory() as place:
            width, read, exported = compared(name, Path(place))
        worst = max(worst, read, exported)
        _row(name, str(width), f"{read:.1e}", f"{exported:.1e}")
    print(f"\n{len(LAYOUTS)} layouts, largest difference {worst:.1e}")
    return 0 if worst <= 1e-5 else 1


def _row(*cells: str) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


def main(words: Sequence[str]) -> int:
    """Print the table of a name."""
    tables = {"recipes": recipes, "faults": faults, "layouts": layouts}
    if not words or words[0] not in tables:
        print(__doc__)
        return 2
    warnings.simplefilter("ignore")
    return tables[words[0]](words[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
