"""Run `prefect …` with the cyclic garbage collector off, for servers that tests start.

Prefect 3.8.8 on SQLite sometimes hangs for a minute and then answers 503. A cancelled request leaves a cursor with
unread rows in a reference cycle. If it is collected in the event loop's thread, `sqlite3_reset` waits, without
releasing the GIL, for the connection. The connection's own thread waits for the write lock, whose owner waits for the
event loop. Only SQLite's timeout of 60 s ends this (py-spy's native stacks; docs/deploy.md). PostgreSQL has no such
cursors.
"""

import gc
import sys

gc.disable()

from prefect.cli import app  # noqa: E402

if __name__ == "__main__":
    sys.exit(app())
