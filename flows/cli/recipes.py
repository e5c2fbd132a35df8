"""`bsl recipes [RECIPE]`: list the recipes, or print one recipe's complete configuration."""

from __future__ import annotations

import shutil
import sys
import textwrap
from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from bsl.flows.cli.terminal.log_lines import printable
from bsl.flows.cli.terminal.options import Output
from bsl.flows.cli.terminal.printing import print_json


def recipes(
    recipe: Annotated[
        str | None, Parameter(help="recipe whose complete configuration is printed [default: list all recipes]")
    ] = None,
    /,
    *,
    every: Annotated[
        bool, Parameter(name="--all", help="list purpose, published row, requirements and GPU hours of each recipe")
    ] = False,
    output: Output = Output(),
) -> None:
    """List the recipes by family, or print the complete configuration of one."""
    from bsl.flows.recipes import recipe as named_recipe

    if recipe:
        print_json(named_recipe(recipe).model_dump(mode="json"))
        return
    if not (every or output.json):
        _print_families()
        return
    from bsl.flows.recipes.listing import listings
    from bsl.flows.sweep.printed_rows import row_lines

    listed = listings()
    if output.json:
        print_json([asdict(listing) for listing in listed])
    else:
        lines = [line for listing in listed for line in listing.lines]
        lines += ["", "Other published rows, with the command that measures them or the reason why not:", *row_lines()]
        print(printable("\n".join(map(_fitting, lines))))


def _print_families() -> None:
    """Print the names of the recipes below the first line of their module."""
    from bsl.flows.recipes import RECIPES

    families: dict[str, list[str]] = {}
    for name, make in RECIPES.items():
        title = str(sys.modules[make.__module__].__doc__).partition("\n")[0].rstrip(".")
        families.setdefault(title, []).append(name)
    console = Console()
    for title, names in families.items():
        console.print(Text(title), Padding(Text("  ".join(names)), (0, 0, 0, 2)), sep="\n")
    print("\nPurpose, requirements and GPU hours: bsl recipes --all    Settings: bsl recipes NAME    Run: bsl run NAME")


def _fitting(line: str) -> str:
    """Wrap a line of the list to the terminal's width, indented after the name; lines in a pipe are not wrapped."""
    if not sys.stdout.isatty():
        return line
    from bsl.flows.recipes.listing import COLUMN

    columns = shutil.get_terminal_size().columns
    return textwrap.fill(line, columns, subsequent_indent=" " * COLUMN, break_on_hyphens=False)
