"""Run a sweep that kills itself with SIGKILL: `sweep_and_die.py EVENT NAME OVER OVERRIDES STORE…`, once per store.

An event is a table that a stage has written but not yet published, or a training snapshot. The process dies at event
number EVENT, counted over all stores; EVENT 0 kills nothing.
"""

import itertools
import json
import os
import signal
import sys

from bsl.flows.sweep.sweep import ablation
from bsl.models.training import snapshots
from bsl.storage.artifacts.draft import Draft
from bsl.tasks.stage.run_context import RunContext

last, name, over, overrides, *stores = sys.argv[1:]
events = itertools.count(1)
written = Draft.write
saved = snapshots.save_snapshot


def count() -> None:
    if next(events) == int(last):
        os.kill(os.getpid(), signal.SIGKILL)


def write_and_count(draft: Draft, frame, table=None) -> None:
    written(draft, frame, table)
    count()


def save_and_count(*args, **kwargs) -> None:
    saved(*args, **kwargs)
    count()


Draft.write = write_and_count
snapshots.save_snapshot = save_and_count
for store in stores:
    site = RunContext(store=store, device="cpu", threads=1, save_every=5)
    ablation(name, json.loads(over), 1, json.loads(overrides), site=site)
