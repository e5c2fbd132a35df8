"""Run stages that are made, cached or fail, in a flow and as a worker does; then SIGKILL: `count_and_die.py STORE`.

The killed process sends nothing at its end, so a receiver has only the metrics sent after each stage.
"""

import logging
import os
import signal
import sys

from storage.artifacts.refs import CorpusRef
from tasks.stage.cached import StageContext, stage
from tasks.stage.log_context import show_logs
from tasks.stage.run_context import RunContext
from tests.flows.test_cached import Size, both, sentences


@stage(ref=CorpusRef, version=1)
def counting(context: StageContext, config: Size) -> None:
    """Fails after it has counted."""
    logging.getLogger("storage.hub.faults").warning("the Hub fails (503); trying again")
    context.draft.note({"statistics": {"read": 5, "too_long": 3, "duplicates": 2}, "target_tokens": 7})
    raise ArithmeticError(config.rows)


if __name__ == "__main__":
    site = RunContext(store=sys.argv[1])
    show_logs()
    both(site, 3)
    both(site, 3)
    sentences(site, Size(rows=5))
    try:
        counting(site, Size(rows=1))
    except ArithmeticError:
        os.kill(os.getpid(), signal.SIGKILL)
