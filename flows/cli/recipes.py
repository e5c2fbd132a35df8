"""`bsl recipes [RECIPE]`: what can be run, or one recipe's complete configuration."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse


def define_recipes(parser: argparse.ArgumentParser) -> None:
    """The verb."""
    parser.add_argument("recipe", nargs="?")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.set_defaults(call=_recipes)


def _recipes(arguments: argparse.Namespace) -> int:
    from flows.recipes import recipe
    from flows.recipes.listing import listings

    if arguments.recipe:
        print(recipe(arguments.recipe).model_dump_json(indent=1))
        return 0
    listed = listings()
    if arguments.json:
        print(json.dumps([asdict(listing) for listing in listed], indent=1))
    else:
        print("\n".join(line for listing in listed for line in listing.lines))
    return 0
