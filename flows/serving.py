"""The process of a command's own Prefect server: it ends when the command does, however that ends.

The command holds the other end of this process's standard input and writes nothing. Whatever ends the command, kill -9
included, closes it, which a signal handler or an `atexit` of the command could not do. Run as a file, with the port as
its argument; nothing of the pipeline is imported.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import Final

_SECONDS_TO_END: Final = 3.0


def _end_with_the_command() -> None:
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_SECONDS_TO_END)
    os._exit(1)  # a connection that is not closed holds uvicorn up


def serve(port: int) -> None:
    """Serve until the command ends."""
    threading.Thread(target=_end_with_the_command, daemon=True).start()
    import uvicorn  # which may take longer than the command lives, as may the server that it imports

    uvicorn.run("prefect.server.api.server:create_app", factory=True, host="127.0.0.1", port=port, log_level="error")


if __name__ == "__main__":
    serve(int(sys.argv[1]))
