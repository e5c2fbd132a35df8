"""`bsl recipes [RECIPE]`: what can be run, or one recipe's complete configuration."""

from __future__ import annotations

import shutil
import sys
import textwrap
from dataclasses import asdict
from typing import TYPE_CHECKING

from flows.cli.terminal.options import add_json, print_json

if TYPE_CHECKING:
    import argparse


def define_recipes(parser: argparse.ArgumentParser) -> None:
    """The verb."""
    parser.add_argument(
        "recipe", nargs="?", metavar="RECIPE", help="whose configuration is printed; all are listed without"
    )
    add_json(parser)
    parser.set_defaults(call=_recipes)


def _recipes(arguments: argparse.Namespace) -> int:
    from flows.recipes import recipe
    from flows.recipes.listing import listings
    from flows.sweep.printed_rows import row_lines

    if arguments.recipe:
        print(recipe(arguments.recipe).model_dump_json(indent=1))
        return 0
    listed = listings()
    if arguments.json:
        print_json([asdict(listing) for listing in listed])
    else:
        lines = [line for listing in listed for line in listing.lines]
        lines += ["", "Other printed rows, each with what measures it, or why nothing does:", *row_lines()]
        print("\n".join(map(_fitting, lines)))
    return 0


def _fitting(line: str) -> str:
    """A line of the list, wrapped at the terminal's width beside its name; whole in a pipe, to be searched."""
    if not sys.stdout.isatty():
        return line
    from flows.recipes.listing import COLUMN

    columns = shutil.get_terminal_size().columns
    return textwrap.fill(line, columns, subsequent_indent=" " * COLUMN, break_on_hyphens=False)
