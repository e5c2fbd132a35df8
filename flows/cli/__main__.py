"""Entry point of `bsl`: imports the command line, whose imports take a second or more, where Ctrl-C ends it quietly."""

from __future__ import annotations

import signal
import sys


def command() -> int:
    """Run the command line and return its exit code (`bsl.flows.cli.main.main`); then Ctrl-C ends the process at once.

    At exit, translation and the embedded server are awaited: a second Ctrl-C there would print a traceback.
    """
    try:
        from bsl.flows.cli.main import main

        code = main()
    except KeyboardInterrupt:
        sys.stderr.write("bsl: interrupted\n")
        code = 130
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return code


if __name__ == "__main__":
    sys.exit(command())
