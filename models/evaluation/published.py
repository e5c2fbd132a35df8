"""Published scores, × 100, for comparison in reports; read from published.csv.

A line of the file is a cell of a table, with the printed order and decimals; an empty value is a printed dash.

- `paper`, `table`: source of the cell. `kind` is `paper` for the three papers that this package builds on. It is
  `field` for other work on the same sets; `quoted_from` then names the source that the scores were copied from.
- `row`, `printed`: the system's unique name here, and its name in the paper, which may be ambiguous: BSL uses one name
  for IS-BERT trained on NLI (Table 1) and IS-BERT trained on each task's own texts (Table 2).
- `suite`, `column`: the sets of the table, and one of them by its declared name, or `avg`, their printed mean.
- `metric`, `protocol`: as in the table `scores`. BERT-flow's scores are means weighted by subset (SimCSE, Table B.1).
- `quoted_from`: the source that the paper names; empty if its authors measured the score.

Dev selection uses STS-B dev, which shares sources with STS12-16. So "unsupervised" means: no labels except those of
the dev set.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import TYPE_CHECKING, Final

from bsl.storage.filesystem.spelling import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

AVERAGE: Final = "avg"
"""Column of a table's printed mean."""
_KEY: Final = ("paper", "kind", "table", "suite", "row", "printed", "metric", "protocol", "quoted_from")


@dataclass(frozen=True)
class PublishedRow:
    """A system's scores in one table under one metric and protocol.

    Attributes:
        cells: Column → score × 100 as printed; empty for a printed dash.
        paper: Short name of the paper.
        kind: `paper` or `field`.
        table: Number of the table; empty for `field`.
        suite: The sets of the table.
        system: The system's name here.
        printed: The system's name in the paper.
        metric: `spearman`, `pearson` or `accuracy`.
        protocol: As in the table `scores`.
        quoted_from: Source that the paper names; for `field`, the source that the score was copied from.
    """

    cells: Mapping[str, str]
    paper: str
    kind: str
    table: str
    suite: str
    system: str
    printed: str
    metric: str
    protocol: str
    quoted_from: str

    @property
    def values(self) -> dict[str, float]:
        """Column → score × 100, without printed dashes."""
        return {column: float(text) for column, text in self.cells.items() if text}

    @property
    def source(self) -> str:
        """Paper and table, and the source that they quote."""
        table = f"{self.paper}, Table {self.table}" if self.table else self.paper
        return f"{table}, quoted from {self.quoted_from}" if self.quoted_from else table


@cache
def published_rows() -> tuple[PublishedRow, ...]:
    """Return all rows of all tables, in printed order; a system has a row for each table that lists it."""
    text = files("bsl.models.evaluation").joinpath("published.csv").read_text(encoding="utf-8")
    lines = groupby(csv.DictReader(text.splitlines()), key=lambda line: tuple(line[name] for name in _KEY))
    return tuple(PublishedRow({line["column"]: line["value"] for line in cells}, *key) for key, cells in lines)


def columns_of(suite: str) -> tuple[str, ...]:
    """Return the columns of a suite's tables, in the papers' order."""
    return tuple(dict.fromkeys(column for row in published_rows() if row.suite == suite for column in row.cells))


def rows_of(system: str) -> list[PublishedRow]:
    """Return a system's rows: for each suite, metric and protocol the row of the first table that prints them.

    Raises:
        ValueError: No table has a system of that name.
    """
    rows: dict[tuple[str, str, str], PublishedRow] = {}
    for row in published_rows():
        if row.system == system:
            rows.setdefault((row.suite, row.metric, row.protocol), row)
    if not rows:
        names = list(dict.fromkeys(row.system for row in published_rows()))
        raise ValueError(
            f"unknown published system {system!r}.{did_you_mean(system, names, most=3)} Column `row` of "
            f"models/evaluation/published.csv lists all {len(names)}."
        )
    return list(rows.values())
