"""Entry point of `bsl`: imports the command line, whose imports take a second or more, where Ctrl-C ends it quietly."""

from __future__ import annotations

import sys


def command() -> int:
    """Run the command line and return its exit code (`bsl.flows.cli.main.main`)."""
    try:
        from bsl.flows.cli.main import main

        return main()
    except KeyboardInterrupt:
        sys.stderr.write("bsl: interrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(command())
