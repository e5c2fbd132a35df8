"""Run flows of short stages, each in a fork of this process, which reads lines `[STORE, COUNT, VARIABLES]`.

With COUNT 0 a flow makes a corpus, pauses, and uses it. Otherwise it makes COUNT corpora and their pairs, each other
one from the cache, and pauses. A pause prints the process id and the corpus, and lasts until a line comes on standard
input. After each flow this process prints the exit code. The modules are imported once for all flows.
"""

import json
import os
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


def pause(word: str) -> None:
    say(f"{os.getpid()} {word}")
    sys.stdin.readline()


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    while line := sys.stdin.readline():
        store, count, variables = json.loads(line)
        if not (child := os.fork()):
            os.environ.update(variables)
            site = RunContext(store=store)
            chain(site, count) if count else waiting(site)
            sys.exit()
        say(f"ended {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}")
