"""Every choice of the recipes beside papers and their code: docs/fidelity.csv; FIDELITY.md has what differs.

    python -m docs.fidelity            writes the tables of FIDELITY.md
    python -m docs.fidelity RECIPE     prints all choices of a recipe

A line of the file is a choice of the recipes of a table. One that names a field gets its value from each recipe; of
another, `does` says what the recipes do.
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

from flows.recipes import recipe

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic import BaseModel

PAGE: Final = Path(__file__).parents[1] / "FIDELITY.md"
CHOICES: Final = Path(__file__).with_name("fidelity.csv")
QUOTED: Final = re.compile(r"`([^`]+)`")
UNSAID: Final = "unsaid"
_TABLE: Final = re.compile(r"^\| choice \|(?:.*\n\|)*.*\n", re.MULTILINE)


@dataclass(frozen=True)
class Choice:
    """A line of the file.

    Attributes:
        recipes: of its table.
        choice: what is chosen.
        field: of the configuration; empty for what no field says.
        paper: what the paper says and where; `unsaid` where it does not.
        code: what the released code does and in which file; as `paper`.
        does: what the recipes do, where no field says it.
        remark: begins with Deviation where a recipe does not do what its source says.
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
        """What each recipe does, as tables print it."""
        if not self.field:
            return (self.does,) * len(self.recipes)
        return tuple(f"`{_written(value_at(recipe(name), self.field))}`" for name in self.recipes)

    @property
    def differs(self) -> bool:
        """Whether paper, code and recipes have several values, or a recipe deviates: FIDELITY.md has these."""
        said = {cell.rpartition(" (")[0] for cell in (self.paper, self.code) if cell != UNSAID}
        values = said.union(self.values) if self.field and said else set()
        return self.remark.startswith("Deviation") or len(values) > 1


@cache
def choices() -> tuple[Choice, ...]:
    """All lines of the file."""
    with CHOICES.open(encoding="utf-8", newline="") as file:
        return tuple(Choice(tuple(line.pop("recipes").split()), **line) for line in csv.DictReader(file))


def tables() -> dict[tuple[str, ...], list[Choice]]:
    """The recipes of each table, with its choices."""
    return {names: list(rows) for names, rows in groupby(choices(), key=lambda choice: choice.recipes)}


def table(rows: Sequence[Choice]) -> Iterator[str]:
    """A table's lines in Markdown.

    Args:
        rows: choices of one table, at least one.
    """
    heads = ("choice", "field", "paper", "released code", *(f"`{name}`" for name in rows[0].recipes), "remark")
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for row in rows:
        field = f"`{row.field}`" if row.field else "—"
        cells_of_row = (row.choice, field, row.paper, row.code, *row.values, row.remark)
        yield f"| {' | '.join(cells_of_row)}".rstrip() + " |"


def generated(page: str) -> str:
    """The page with its tables as file and recipes have them.

    Args:
        page: text of FIDELITY.md; a table's header names the recipes.

    Raises:
        KeyError: a header names recipes that no table of the file has, or a choice names no field of its recipes.
    """
    known = tables()

    def written(found: re.Match[str]) -> str:
        names = tuple(QUOTED.findall(found[0].splitlines()[0]))
        first = {} if known[names][0] is choices()[0] else {row.field: row for row in next(iter(known.values()))}
        shown = [row for row in known[names] if row.differs and not _repeats(row, first.get(row.field))]
        return "".join(f"{line}\n" for line in table(shown))

    return _TABLE.sub(written, page)


def value_at(config: BaseModel, path: str) -> Any:  # noqa: ANN401 - a JSON value
    """A field by its path, such as `pairs.pairings.0.view_1`, as JSON has it."""
    found: Any = config.model_dump(mode="json")
    for step in path.split("."):
        found = found[int(step)] if isinstance(found, list) else found[step]
    return found


def whole_table(name: str) -> list[str]:
    """All choices of a recipe's table; nothing for a recipe that is in none.

    Args:
        name: the recipe's.
    """
    return [line for names, rows in tables().items() if name in names for line in table(rows)]


def _repeats(row: Choice, first: Choice | None) -> bool:
    """Whether a choice without a remark says again what the first table has."""
    if first is None or row.remark or not first.differs:
        return False
    return row.paper.startswith(first.paper.rpartition(" (")[0]) and row.code.startswith(first.code.rpartition(" (")[0])


def _written(value: object) -> str:
    return f"{Decimal(repr(value)):f}" if isinstance(value, float) else json.dumps(value)


if __name__ == "__main__":
    if sys.argv[1:]:
        absent = f"{sys.argv[1]} is in no table: it is as the recipe that its description names"
        sys.stdout.write("\n".join(whole_table(sys.argv[1]) or [absent]) + "\n")
    else:
        PAGE.write_text(generated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
