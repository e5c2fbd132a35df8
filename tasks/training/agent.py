"""torchrun's agent: it ends when the command that started it does, however that ends.

The command holds the other end of this process's standard input and writes nothing; whatever ends the command, kill -9
included, closes it. The agent then stops its trainers, which save their state, as it does when it is asked to.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import Final

from torch.distributed.run import main

_SECONDS_TO_END: Final = 60.0  # torchrun gives its trainers half of it before it kills them


def _end_with_the_command() -> None:
    os.read(sys.stdin.fileno(), 1)  # `sys.stdin.read` holds a lock without which Python aborts at its end
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_SECONDS_TO_END)
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_end_with_the_command, daemon=True).start()
    main(sys.argv[1:])
