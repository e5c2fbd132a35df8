"""Figures that papers print, × 100, for a report's own to stand beside; published.csv holds them cell by cell.

A line of the file is a cell of a table, in the order and with the decimals of print; an empty value is a printed dash.

- `paper`, `table`: where it is printed. `kind` is `paper` for the three papers that this package is built on and
  `field` for other work on the same sets, whose figures were read where `quoted_from` says.
- `row`, `printed`: the system's name here, one for each system, and the paper's, which may serve for several: BSL calls
  IS-BERT trained on NLI (Table 1) and on each task's own texts (Table 2) alike.
- `suite`, `column`: the sets of the table; of them one by its declared name, or `avg`, their printed mean.
- `metric`, `protocol`: as in the table `scores`. BERT-flow's figures are means weighted by subset (SimCSE, Table B.1).
- `quoted_from`: whom the paper names as the source; empty where its authors measured.

Dev selection uses STS-B dev, which shares sources with STS12-16, so "unsupervised" means: no labels but those of the
dev set's ranking.
"""

from __future__ import annotations

import csv
import difflib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

AVERAGE: Final = "avg"
"""Suite → what its tables show."""
_PLACE: Final = ("paper", "kind", "table", "suite", "row", "printed", "metric", "protocol", "quoted_from")


@dataclass(frozen=True)
class PublishedRow:
    """A system's figures in one table under one metric and protocol.

    Attributes:
        cells: column → figure × 100 as printed; empty where a dash is printed.
        paper: short name of the paper.
        kind: `paper` or `field`.
        table: number of the table; empty for `field`.
        suite: the sets of its table.
        system: its name here.
        printed: its name there.
        metric: `spearman`, `pearson` or `accuracy`.
        protocol: as in the table `scores`.
        quoted_from: whom the paper names as the source, or where a figure of the field was read.
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
        """Column → figure × 100, of the columns that have one."""
        return {column: float(text) for column, text in self.cells.items() if text}

    @property
    def source(self) -> str:
        """Who printed it where, and whom they quote."""
        place = f"{self.paper}, Table {self.table}" if self.table else self.paper
        return f"{place}, quoted from {self.quoted_from}" if self.quoted_from else place


@cache
def published_rows() -> tuple[PublishedRow, ...]:
    """Every row of every table, in the order of print; a system stands in as many as print it."""
    text = files("models.evaluation").joinpath("published.csv").read_text(encoding="utf-8")
    lines = groupby(csv.DictReader(text.splitlines()), key=lambda line: tuple(line[name] for name in _PLACE))
    return tuple(PublishedRow({line["column"]: line["value"] for line in cells}, *place) for place, cells in lines)


def columns_of(suite: str) -> tuple[str, ...]:
    """Columns of a suite's tables, in the papers' order."""
    return tuple(dict.fromkeys(column for row in published_rows() if row.suite == suite for column in row.cells))


def rows_of(system: str) -> list[PublishedRow]:
    """A system's figures: for each suite, metric and protocol the first table that prints them.

    Raises:
        ValueError: no table has a system of that name.
    """
    rows: dict[tuple[str, str, str], PublishedRow] = {}
    for row in published_rows():
        if row.system == system:
            rows.setdefault((row.suite, row.metric, row.protocol), row)
    if not rows:
        names = list(dict.fromkeys(row.system for row in published_rows()))
        nearest = difflib.get_close_matches(system, names, n=3) or names[:3]
        raise ValueError(
            f"{system!r}: no published row is called so; the nearest of {len(names)} are {', '.join(nearest)}. "
            "All are in column `row` of models/evaluation/published.csv"
        )
    return list(rows.values())
