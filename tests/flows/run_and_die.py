"""Runs that kill themselves with SIGKILL, one inside each of some stages: `run_and_die.py STORE KINDS OVERRIDES`.

KINDS are separated by commas; in the last run, whose kind is "", nothing is killed. Each dies after its stage has
written its first bytes and before it publishes; in training, after a snapshot. What is imported serves all of them:
each is a fork, and this process computes nothing.
"""

import json
import os
import signal
import sys

import models.training.loop  # noqa: F401  which stages import
from flows.pipeline import pipeline
from models.training import snapshots
from storage.artifacts.draft import Draft
from tasks.stage.run_context import RunContext

appended = Draft._append  # which all of Draft's ways to write come to
saved = snapshots.save_snapshot


def run_dying_in(kind: str, store: str, overrides: dict[str, object]) -> None:
    """A run of this process; it does not come back unless `kind` is ""."""

    def append_and_die(draft: Draft, *args) -> None:
        appended(draft, *args)
        if draft.ref.kind.split("/")[0] == kind:
            os.kill(os.getpid(), signal.SIGKILL)

    def save_and_die(*args, **kwargs) -> None:
        saved(*args, **kwargs)
        os.kill(os.getpid(), signal.SIGKILL)

    Draft._append = append_and_die
    if kind == "training":
        snapshots.save_snapshot = save_and_die
    pipeline("tiny", overrides, RunContext(store=store, save_every=2))


def outcome(kind: str, store: str, overrides: dict[str, object]) -> int:
    """How a forked run ended, as `subprocess` says it."""
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
