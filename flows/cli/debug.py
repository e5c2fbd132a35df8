"""`--debug`, which verbs and their actions take. Nothing is imported here, so that `bsl --help` comes at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse


def add_debug(parser: argparse.ArgumentParser, *, default: bool | str = False) -> None:
    """`--debug`; below a verb's parser the default is `argparse.SUPPRESS`, or it would undo what stands before it."""
    parser.add_argument(
        "--debug", action="store_true", help="show where an error comes from, and Prefect's log", default=default
    )
