"""Run a sweep of long trainings in two lanes and print their progress: `sweep_in_lanes.py OVERRIDES STORE`."""

import json
import signal
import sys

from flows.sweep.sweep import ablation
from tasks.stage.progress import listening
from tasks.stage.run_context import RunContext


def show(event, value):
    """Print each progress event as a line."""
    if event == "advances":
        sys.stdout.write(f"{value.what}: {value.done} of {value.total}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore SIGINT
    overrides, store = json.loads(sys.argv[1]), sys.argv[2]
    overrides["training"] |= {"epochs": 1000}
    with listening(show):
        over = {"training.max_steps": [3, 5000, 5001]}
        ablation("tiny", over, 1, overrides, lanes=2, site=RunContext(store=store, device="cpu", threads=1))
