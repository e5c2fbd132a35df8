"""A run that kills itself with SIGKILL inside one stage (none if KIND is ""): `run_and_die.py STORE KIND OVERRIDES`.

It dies after the stage has written its first bytes and before it publishes; in training, after a snapshot.
"""

import json
import os
import signal
import sys

from flows.pipeline import pipeline
from models.training import snapshots
from storage.draft import Draft
from tasks.site import Site

store, kind, overrides = sys.argv[1:]
written = Draft.write
saved = snapshots.save_snapshot


def write_and_die(draft: Draft, frame, table=None) -> None:
    written(draft, frame, table)
    if draft.ref.kind.split("/")[0] == kind:
        os.kill(os.getpid(), signal.SIGKILL)


def save_and_die(*args, **kwargs) -> None:
    saved(*args, **kwargs)
    os.kill(os.getpid(), signal.SIGKILL)


Draft.write = write_and_die
if kind == "training":
    snapshots.save_snapshot = save_and_die
pipeline("tiny", json.loads(overrides), Site(store=store, save_every=2))
