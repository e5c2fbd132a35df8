"""Run a flow that waits between two stages until its stdin closes: `use_and_wait.py STORE`."""

import sys

from prefect import flow

from bsl.storage.artifacts.refs import PairsRef
from bsl.tasks.stage.run_context import RunContext
from tests.flows.test_cached import Size, doubled, sentences


@flow
def waiting(site: RunContext) -> PairsRef:
    """Make a corpus, wait, and use it."""
    corpus = sentences(site, Size(rows=3))
    sys.stdout.write(f"{corpus.path}\n")
    sys.stdout.flush()
    sys.stdin.read()
    return doubled(site, corpus, Size(rows=1))


if __name__ == "__main__":
    sys.stdout.write(waiting(RunContext(store=sys.argv[1])).path)
