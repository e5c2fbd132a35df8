"""Compare the choices in papers, released code and recipes (docs/fidelity.csv); FIDELITY.md lists the differences.

    python -m docs.fidelity            writes the tables of FIDELITY.md
    python -m docs.fidelity RECIPE     prints all choices of a recipe

A line of the file is a choice in the table of some recipes. If it names a config field, the recipes give the values;
otherwise column `does` describes the recipes.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bsl.flows.recipes import recipe

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic import BaseModel

PAGE: Final = Path(__file__).parents[1] / "FIDELITY.md"
CHOICES: Final = Path(__file__).with_name("fidelity.csv")
QUOTED: Final = re.compile(r"`([^`]+)`")
NOT_STATED: Final = "not stated"
_TABLE: Final = re.compile(r"^\| choice \|(?:.*\n\|)*.*\n", re.MULTILINE)


@dataclass(frozen=True)
class Choice:
    """A line of the file.

    Attributes:
        recipes: Recipes in its table.
        choice: Name of the choice.
        field: Config field; empty if the choice has none.
        paper: Value in the paper, with its place, or `not stated`.
        code: Value in the released code, with its file, or `not stated`.
        does: Behaviour of the recipes, if there is no field.
        remark: Begins with Deviation if a recipe differs from its source.
    """

    recipes: tuple[str, ...]
    choice: str
    field: str
    paper: str
    code: str
    does: str
    remark: str

    @property
    def values(self) -> tuple[str, ...]:
        """Value in each recipe, formatted for the tables."""
        if not self.field:
            return (self.does,) * len(self.recipes)
        return tuple(f"`{_written(value_at(recipe(name), self.field))}`" for name in self.recipes)

    @property
    def differs(self) -> bool:
        """Whether FIDELITY.md lists the choice: paper, code and recipes differ, or a recipe deviates."""
        said = {cell.rpartition(" (")[0] for cell in (self.paper, self.code) if cell != NOT_STATED}
        values = said.union(self.values) if self.field and said else set()
        return self.remark.startswith("Deviation") or len(values) > 1


@cache
def choices() -> tuple[Choice, ...]:
    """Return all lines of the file."""
    with CHOICES.open(encoding="utf-8", newline="") as file:
        return tuple(Choice(tuple(line.pop("recipes").split()), **line) for line in csv.DictReader(file))


def tables() -> dict[tuple[str, ...], list[Choice]]:
    """Return the choices of each table, by its recipes."""
    return {names: list(rows) for names, rows in groupby(choices(), key=lambda choice: choice.recipes)}


def table(rows: Sequence[Choice]) -> Iterator[str]:
    """Yield the lines of a table in Markdown.

    Args:
        rows: Choices of one table, at least one.
    """
    heads = ("choice", "field", "paper", "released code", *(f"`{name}`" for name in rows[0].recipes), "remark")
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for row in rows:
        field = f"`{row.field}`" if row.field else "—"
        cells_of_row = (row.choice, field, row.paper, row.code, *row.values, row.remark)
        yield f"| {' | '.join(cells_of_row)}".rstrip() + " |"


def generated(page: str) -> str:
    """Return the page with tables regenerated from the file and the recipes.

    Args:
        page: Text of FIDELITY.md; a table's header names its recipes.

    Raises:
        KeyError: The file has no table for the recipes in a header, or a recipe lacks the field of a choice.
    """
    known = tables()

    def written(found: re.Match[str]) -> str:
        names = tuple(QUOTED.findall(found[0].splitlines()[0]))
        first = {} if known[names][0] is choices()[0] else {row.field: row for row in next(iter(known.values()))}
        shown = [row for row in known[names] if row.differs and not _repeats(row, first.get(row.field))]
        return "".join(f"{line}\n" for line in table(shown))

    return _TABLE.sub(written, page)


def value_at(config: BaseModel, path: str) -> Any:  # noqa: ANN401 - a JSON value
    """Return the JSON value of a field by its path, such as `pairs.pairings.0.view_1`."""
    found: Any = config.model_dump(mode="json")
    for step in path.split("."):
        found = found[int(step)] if isinstance(found, list) else found[step]
    return found


def whole_table(name: str) -> list[str]:
    """Return the lines of a recipe's table with all choices; empty for a recipe without table.

    Args:
        name: Name of the recipe.
    """
    return [line for names, rows in tables().items() if name in names for line in table(rows)]


def _repeats(row: Choice, first: Choice | None) -> bool:
    """Return whether a choice without remark repeats a difference of the first table."""
    if first is None or row.remark or not first.differs:
        return False
    return row.paper.startswith(first.paper.rpartition(" (")[0]) and row.code.startswith(first.code.rpartition(" (")[0])


def _written(value: object) -> str:
    return f"{Decimal(repr(value)):f}" if isinstance(value, float) else json.dumps(value)


if __name__ == "__main__":
    if sys.argv[1:]:
        absent = f"{sys.argv[1]} is in no table: its choices equal those of the recipe in its description"
        sys.stdout.write("\n".join(whole_table(sys.argv[1]) or [absent]) + "\n")
    else:
        PAGE.write_text(generated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
