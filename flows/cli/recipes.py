"""`bsl recipes [RECIPE]`: list the recipes, or print one recipe's complete configuration."""

from __future__ import annotations

import shutil
import sys
import textwrap
from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

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
        print(printable(_families()))
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


def _families() -> str:
    """Return the names of the recipes below the first line of their module."""
    from bsl.flows.recipes import RECIPES

    names: dict[str, list[str]] = {}
    for name, make in RECIPES.items():
        title = str(sys.modules[make.__module__].__doc__).partition("\n")[0].rstrip(".")
        names.setdefault(title, []).append(name)
    width = shutil.get_terminal_size((120, 24)).columns
    lines = [
        line
        for title, group in names.items()
        for line in (
            title,
            *textwrap.wrap(
                "  ".join(group), width, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
            ),
        )
    ]
    closing = (
        "Purpose, requirements and GPU hours: bsl recipes --all    Settings: bsl recipes NAME    Run: bsl run NAME"
    )
    return "\n".join([*lines, "", closing])


def _fitting(line: str) -> str:
    """Wrap a line of the list to the terminal's width, indented after the name; lines in a pipe are not wrapped."""
    if not sys.stdout.isatty():
        return line
    from bsl.flows.recipes.listing import COLUMN

    columns = shutil.get_terminal_size().columns
    return textwrap.fill(line, columns, subsequent_indent=" " * COLUMN, break_on_hyphens=False)
