"""Prefect's own command, `prefect …`, with the collector of cycles off, for servers that tests start.

Prefect 3.8.8 on SQLite stands still for a minute at times, and then answers 503. A request that is cancelled leaves a
cursor with rows unread in a cycle of references. Collected in the event loop's thread, it waits in `sqlite3_reset`,
which keeps the GIL, for a connection whose own thread waits for the write lock, whose holder waits for the loop: until
SQLite's timeout of 60 s (py-spy's native stacks; docs/deploy.md). A server of PostgreSQL has no such cursors.
"""

import gc
import sys

gc.disable()

from prefect.cli import app  # noqa: E402

if __name__ == "__main__":
    sys.exit(app())
