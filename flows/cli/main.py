"""The command `bsl`: parses, calls, prints. Each verb's work is in a room of its own."""

from __future__ import annotations

import argparse
import logging
import sys
from typing import TYPE_CHECKING

from flows.cli.artifacts import add_artifacts
from flows.cli.assets import add_assets
from flows.cli.doctor import add_doctor
from flows.cli.evaluate import add_evaluate
from flows.cli.field import add_field
from flows.cli.mirror import add_mirror
from flows.cli.pins import add_pins
from flows.cli.reproduce import add_reproduce
from flows.cli.run import add_recipes, add_run, add_ui
from flows.cli.sweep import add_sweep
from models.errors import ModelError
from storage.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

USAGE_ERROR, FAILURE, INTERRUPTED = 2, 1, 130
VERBS = (
    add_run, add_evaluate, add_reproduce, add_sweep, add_field, add_recipes, add_artifacts, add_assets, add_mirror,
    add_pins, add_doctor, add_ui,
)  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code: 0, 1 for a run that failed, 2 for a call that makes no sense.

    Ctrl-C gives 130, as the shell has it.
    """
    parser = argparse.ArgumentParser(prog="bsl", description="Raw sentences in, an evaluated sentence encoder out.")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for add in VERBS:
        add(verbs)
    arguments = parser.parse_args(argv)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s", datefmt="%H:%M:%S")
    call: Callable[[argparse.Namespace], int] = arguments.call
    try:
        return call(arguments)
    except KeyboardInterrupt:
        print("bsl: interrupted; what was finished is kept, run again to go on", file=sys.stderr)
        return INTERRUPTED
    except (StorageError, ModelError, OSError, ImportError) as error:  # an optional package may be missing: s3fs
        print(f"bsl: {error}", file=sys.stderr)
        return FAILURE
    except ValueError as error:  # unknown recipe, field or value: said before anything was started
        print(f"bsl: {error}", file=sys.stderr)
        return USAGE_ERROR


if __name__ == "__main__":
    sys.exit(main())
