"""FIDELITY.md's columns of recipes, written from the recipes: `python -m docs.fidelity`.

A table's header names its recipes between the released code and the remark. Each row that names a field gets that
field's value of each recipe; the other cells are text and stay.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from flows.recipes import recipe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import BaseModel

PAGE: Final = Path(__file__).parents[1] / "FIDELITY.md"
QUOTED: Final = re.compile(r"`([^`]+)`")
_TABLE: Final = re.compile(r"^\| choice \|(?:.*\n\|)*.*\n", re.MULTILINE)
_FIRST: Final = 4  # choice, field, paper, released code; after the recipes comes the remark


def generated(page: str) -> str:
    """The page with its columns of recipes as the recipes have them.

    Args:
        page: text of FIDELITY.md.

    Raises:
        KeyError: a row names a field that a recipe does not have.
    """
    return _TABLE.sub(lambda table: "".join(f"{line}\n" for line in _lines(table[0].splitlines())), page)


def cells(line: str) -> list[str]:
    """The cells of a table's line."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def value_at(config: BaseModel, path: str) -> Any:  # noqa: ANN401 - a JSON value
    """A field by its path, such as `pairs.pairings.0.view_1`, as JSON has it."""
    found: Any = config.model_dump(mode="json")
    for step in path.split("."):
        found = found[int(step)] if isinstance(found, list) else found[step]
    return found


def _lines(lines: list[str]) -> Iterator[str]:
    header, rule, *rows = lines
    configs = [recipe(QUOTED.findall(cell)[0]) for cell in cells(header)[_FIRST:-1]]
    yield from (header, rule)
    for row in rows:
        choice, field, paper, code, *given, remark = cells(row)
        if path := QUOTED.findall(field):
            given = [f"`{_written(value_at(config, path[0]))}`" for config in configs]
        yield f"| {' | '.join((choice, field, paper, code, *given, remark))}".rstrip() + " |"


def _written(value: object) -> str:
    return f"{Decimal(repr(value)):f}" if isinstance(value, float) else json.dumps(value)


if __name__ == "__main__":
    PAGE.write_text(generated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
