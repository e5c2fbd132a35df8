"""Run a pipeline that kills itself with SIGKILL, once in each of some stages: `run_and_die.py STORE KINDS OVERRIDES`.

KINDS are separated by commas; a last run, with kind "", is not killed. Each run dies after its stage has written its
first bytes and before it publishes; a training dies after a snapshot. Every run is a fork, so this process imports the
modules once for all of them, and computes nothing.
"""

import json
import os
import signal
import sys

import bsl.models.training.loop  # noqa: F401  stages import it
from bsl.flows.pipeline import pipeline
from bsl.models.training import snapshots
from bsl.storage.artifacts.draft import Draft
from bsl.tasks.stage.run_context import RunContext

written = Draft.write_all  # `Draft.write` calls it
saved = snapshots.save_snapshot


def run_dying_in(kind: str, store: str, overrides: dict[str, object]) -> None:
    """Run the pipeline in this process; it returns only if `kind` is ""."""

    def write_and_die(draft: Draft, *args) -> int:
        rows = written(draft, *args)
        if draft.ref.kind.split("/")[0] == kind:
            os.kill(os.getpid(), signal.SIGKILL)
        return rows

    def save_and_die(*args, **kwargs) -> None:
        saved(*args, **kwargs)
        os.kill(os.getpid(), signal.SIGKILL)

    Draft.write_all = write_and_die
    if kind == "training":
        snapshots.save_snapshot = save_and_die
    pipeline("tiny", overrides, RunContext(store=store, save_every=2))


def outcome(kind: str, store: str, overrides: dict[str, object]) -> int:
    """Return the exit code of a forked run, as `subprocess` gives it."""
    child = os.fork()
    if child == 0:
        run_dying_in(kind, store, overrides)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


url, kinds, changes = sys.argv[1:]
for each in kinds.split(","):
    ended = outcome(each, url, json.loads(changes))
    if ended != (-signal.SIGKILL if each else 0):
        sys.exit(f"the run that was to die in {each or 'nothing'} ended with {ended}")
