"""The stage at work: its outcome is counted, and log lines name it."""

from __future__ import annotations

import time
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from tasks.stage.metrics import count_made, count_outcome, flush

if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.artifacts.manifest import Manifest
    from tasks.stage.progress import Step


class Account:
    """What is known of a stage that was called.

    Attributes:
        step: the stage, and its artifact.
    """

    def __init__(self, step: Step) -> None:
        self.step = step
        self._made = False
        self._started = time.monotonic()

    def made(self, manifest: Manifest) -> None:
        """Note that its artifact was made, not found."""
        self._made = True
        count_made(self.step, manifest)

    def close(self, error: str = "") -> None:
        """Count how it ended."""
        outcome = "failed" if error else "made" if self._made else "found"
        count_outcome(self.step, outcome, time.monotonic() - self._started, error)


_account: ContextVar[Account | None] = ContextVar("account", default=None)


@contextmanager
def account_of(step: Step) -> Iterator[Account]:
    """Keep a stage's account until the block ends; one that is open for the same step is continued.

    Prefect stands between a stage's call and its work, and does not pass on what was made.
    """
    outer = _account.get()
    if outer is not None and outer.step == step:
        yield outer
        return
    own = Account(step)
    token = _account.set(own)
    try:
        yield own
    except BaseException as error:
        own.close(type(error).__name__)
        raise
    else:
        own.close()
    finally:
        _account.reset(token)
        if outer is None:  # a shard inside a stage is sent with it, or by the periodic export
            flush()


def step_at_work() -> Step | None:
    """The stage that is at work in this thread, the innermost."""
    account = _account.get()
    return account.step if account else None
