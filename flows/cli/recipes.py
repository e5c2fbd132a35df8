"""`bsl recipes [RECIPE]`: list the recipes, or print one recipe's complete configuration."""

from __future__ import annotations

import shutil
import sys
import textwrap
from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from flows.cli.terminal.options import Output
from flows.cli.terminal.printing import print_json


def recipes(
    recipe: Annotated[
        str | None, Parameter(help="recipe whose complete configuration is printed [default: list all recipes]")
    ] = None,
    /,
    *,
    output: Output = Output(),
) -> None:
    """List the recipes, or print the complete configuration of one."""
    from flows.recipes import recipe as named_recipe
    from flows.recipes.listing import listings
    from flows.sweep.printed_rows import row_lines

    if recipe:
        print(named_recipe(recipe).model_dump_json(indent=1))
        return
    listed = listings()
    if output.json:
        print_json([asdict(listing) for listing in listed])
    else:
        lines = [line for listing in listed for line in listing.lines]
        lines += ["", "Other published rows, with the command that measures them or the reason why not:", *row_lines()]
        print("\n".join(map(_fitting, lines)))


def _fitting(line: str) -> str:
    """Wrap a line of the list to the terminal's width, indented after the name; lines in a pipe are not wrapped."""
    if not sys.stdout.isatty():
        return line
    from flows.recipes.listing import COLUMN

    columns = shutil.get_terminal_size().columns
    return textwrap.fill(line, columns, subsequent_indent=" " * COLUMN, break_on_hyphens=False)
