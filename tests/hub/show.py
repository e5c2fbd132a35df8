"""Print recipes by step, with the stand-in Hub, as a Markdown table.

python -m tests.hub.show recipes [RECIPE …]   minutes to hours; exit code 1 if a cell is not green
python -m tests.hub.show recipes --no-worker [RECIPE …]   half of the time: no run by a deployment
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


def _row(*cells: str) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] != ["recipes"]:
        sys.exit(__doc__)
    warnings.simplefilter("ignore")
    sys.exit(recipes(sys.argv[2:]))
