"""Run a flow of many short stages, each of which reads the last one's artifact: `make_many.py STORE COUNT DONE`.

At the end it makes the file DONE, and lives until its standard input is closed.
"""

import sys
from pathlib import Path

from prefect import flow

from bsl.tasks.stage.run_context import RunContext
from tests.flows.test_cached import Size, doubled, sentences


@flow
def chain(site: RunContext, count: int) -> None:
    """Make corpora and their pairs; every other one is in the cache already."""
    for rows in range(1, count + 1):
        for size in (rows, 1):
            doubled(site, sentences(site, Size(rows=size)), Size(rows=rows))


if __name__ == "__main__":
    chain(RunContext(store=sys.argv[1]), int(sys.argv[2]))
    Path(sys.argv[3]).touch()
    sys.stdin.read()
