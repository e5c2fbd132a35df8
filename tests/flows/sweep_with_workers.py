"""Run a sweep of long trainings with two workers: `sweep_with_workers.py OVERRIDES STORE`."""

import json
import signal
import sys

from bsl.flows.sweep.sweep import ablation
from bsl.tasks.stage.run_context import RunContext

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore SIGINT
    overrides, store = json.loads(sys.argv[1]), sys.argv[2]
    overrides["training"] |= {"epochs": 1000}
    over = {"training.max_steps": [3, 5000, 5001]}
    site = RunContext(store=store, device="cpu", threads=1, save_every=5)
    ablation("tiny", over, 1, overrides, workers=2, site=site)
