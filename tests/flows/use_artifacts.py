"""Run a flow of short stages: `use_artifacts.py STORE COUNT`. It pauses until a line comes on standard input.

With COUNT 0 it makes a corpus, prints its path, pauses, and uses it. Otherwise it makes COUNT corpora and their pairs,
each other one from the cache, prints a line, and pauses.
"""

import sys

from prefect import flow

from bsl.tasks.stage.run_context import RunContext
from tests.flows.test_cached import Size, doubled, sentences


@flow
def chain(site: RunContext, count: int) -> None:
    for rows in range(1, count + 1):
        for size in (rows, 1):
            doubled(site, sentences(site, Size(rows=size)), Size(rows=rows))
    pause("done")


@flow
def waiting(site: RunContext) -> None:
    corpus = sentences(site, Size(rows=3))
    pause(corpus.path)
    doubled(site, corpus, Size(rows=1))


def pause(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
    sys.stdin.readline()


if __name__ == "__main__":
    site, count = RunContext(store=sys.argv[1]), int(sys.argv[2])
    chain(site, count) if count else waiting(site)
