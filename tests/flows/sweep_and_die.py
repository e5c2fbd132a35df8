"""A sweep that kills itself with SIGKILL: `sweep_and_die.py EVENT NAME OVER OVERRIDES STORE…`, in each store in turn.

An event is a table that a stage has written and not yet published, or a snapshot of a training; it dies at the EVENT-th
of this process, or not at all at 0.
"""

import itertools
import json
import os
import signal
import sys

from flows.sweep.sweep import ablation
from models.training import snapshots
from storage.artifacts.draft import Draft
from tasks.stage.run_context import RunContext

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
