"""Score tables in the papers' layout: fixed columns, × 100, an average only if every column has a score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from bsl.models.evaluation.published import AVERAGE, columns_of
from bsl.models.evaluation.signature import joint_signature
from bsl.storage.record import Record
from bsl.tasks.rendering.blocks import WITH_INTERVAL, Row, Table
from bsl.tasks.rendering.numbers import MISSING, fixed
from bsl.tasks.rendering.score_tables import figure_cell

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from bsl.models.evaluation.published import PublishedRow

    Figures = Mapping[str, Mapping[str, Any]]


class PaperTable(Record):
    """Layout of a published table; each kind of evaluation lists its tables."""

    title: str
    columns: tuple[tuple[str, str], ...]
    """Dataset, or `<dataset>/<subset>`, and its heading, in the papers' order."""
    metrics: tuple[str, ...]
    """Metrics; one line for each metric and protocol."""
    undivided: tuple[str, ...] = ()
    """Datasets without subsets, whose score is the same under all protocols over subsets."""
    average: str = "Avg."
    """Heading of the last column."""

    @property
    def sets(self) -> tuple[str, ...]:
        """Datasets, or subsets, of the columns."""
        return tuple(name for name, _ in self.columns)

    @property
    def divided(self) -> str | None:
        """The dataset whose subsets are the columns, if there is one; papers may print only its mean."""
        found = {name.partition("/")[0] for name in self.sets if "/" in name}
        return found.pop() if len(found) == 1 else None


_NAMED: Final = {"\\": "backslash", "^": "asciicircum", "~": "asciitilde"}
_LATEX: Final = str.maketrans(
    {each: f"\\{each}" for each in "&%$#_{}"}
    | {each: f"\\text{name}{{}}" for each, name in _NAMED.items()}
    | {MISSING: "--", "[": "{[}"}  # `[` at the beginning of a row would be an option of the `\\` before it
)
_COLUMN: Final = pl.when(subset="all").then("dataset").otherwise(pl.concat_str("dataset", "subset", separator="/"))
OVER_SUBSETS: Final = ("mean", "wmean")
"""Protocols that average over subsets; a set without subsets has the figure of `all` under them."""


def paper_tables(
    scores: pl.DataFrame, tables: Iterable[PaperTable]
) -> Iterator[tuple[str, list[dict[str, str]], list[str]]]:
    """Yield title, rows and signatures of every table with a score; a row with a missing score has no average."""
    for table in tables:
        if lines := list(paper_lines(table, scores)):
            yield table.title, [_plain_row(table, *line) for line in lines], [_footnote(*line) for line in lines]


def as_latex(title: str, rows: list[dict[str, str]], notes: Iterable[str] = ()) -> str:
    """Return a table as a LaTeX `tabular` (booktabs), with title and notes as comments above it."""
    names = list(rows[0])
    cells = [[cell.translate(_LATEX) for cell in line] for line in (names, *(row.values() for row in rows))]
    lines = [" & ".join(line) + r" \\" for line in cells]
    head = rf"\begin{{tabular}}{{ll{'c' * (len(names) - 2)}}}"
    comments = [f"% {' '.join(line.split())}" for line in (title, *notes)]
    body = [r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule"]
    return "\n".join([*comments, head, *body, r"\end{tabular}"])


def paper_lines(table: PaperTable, scores: pl.DataFrame) -> Iterator[tuple[tuple[str, str], dict[str, dict[str, Any]]]]:
    """Yield for each row of a table the system and `metric, protocol`, and column → row of `scores`."""
    is_of_table = _COLUMN.is_in(table.sets) & pl.col("metric").is_in(table.metrics)
    # The papers' tables have no dev and train splits.
    chosen = scores.filter(is_of_table & ~pl.col("split").is_in(["dev", "train"])).with_columns(column=_COLUMN)
    for model, metric in chosen.select("model", "metric").unique(maintain_order=True).rows():
        figures = chosen.filter(model=model, metric=metric)
        for protocol in figures["protocol"].unique(maintain_order=True):
            shown = {name: figures.filter(column=name, protocol=_shown(table, name, protocol)) for name in table.sets}
            yield (
                (model, f"{metric}, {protocol}"),
                {name: rows.row(0, named=True) for name, rows in shown.items() if rows.height},
            )


def _plain_row(table: PaperTable, system: tuple[str, str], figures: Figures) -> dict[str, str]:
    headings = [*(heading for _, heading in table.columns), table.average]
    values = [None if value is None else 100 * value for value in with_mean(_values(figures), table.sets)]
    return dict(zip(("system", "figure", *headings), (*system, *map(fixed, values)), strict=True))


def _shown(table: PaperTable, dataset: str, protocol: str) -> str:
    return "all" if protocol in OVER_SUBSETS and dataset in table.undivided else protocol


def _footnote(line: tuple[str, str], figures: Figures) -> str:
    return f"{', '.join(line)}: {joint_signature([row['signature'] for row in figures.values()])}"


def tables_of(
    scores: pl.DataFrame, tables: Sequence[PaperTable], published: Sequence[PublishedRow], result: str
) -> Iterator[Table]:
    """Yield the papers' tables of the scored sets, with published rows and differences below the system `result`."""
    for table in tables:
        lines = list(paper_lines(table, scores))
        columns = [(name, heading) for name, heading in table.columns if any(name in line for _, line in lines)]
        if not columns:
            continue
        names = [name for name, _ in columns]
        complete = len(columns) == len(table.columns) > 1
        width = len(names) + complete  # only a complete table has an average
        rows = [Row([*system, *_measured(line, names)[:width]]) for system, line in lines]
        for (model, figure), line in lines:
            for row, mean in _published_rows(published, table, names, figure) if model == result else ():
                printed, gap = _compared(row, _values(line), names, mean)
                rows += [
                    Row([f"{row.system}: {row.source}", "published", *printed[:width]], "published"),
                    Row([f"this run minus {row.system}", "difference", *gap[:width]], "difference"),
                ]
        heads = ["system", "figure", *(heading for _, heading in columns), table.average][: 2 + width]
        yield Table(f"{table.title}: figures × 100{WITH_INTERVAL}", heads, rows, brief=True)


def with_mean(values: Mapping[str, float], names: Sequence[str]) -> list[float | None]:
    """Return the value of each column, and their mean if every column has one."""
    found = [values.get(name) for name in names]
    known = [value for value in found if value is not None]
    return [*found, sum(known) / len(known) if len(known) == len(names) else None]


def _values(figures: Figures) -> dict[str, float]:
    return {name: row["value"] for name, row in figures.items()}


def _measured(line: Figures, names: Sequence[str]) -> list[str]:
    *_, mean = with_mean(_values(line), names)
    cells = [figure_cell(line[name]) if name in line else MISSING for name in names]
    return [*cells, fixed(None if mean is None else 100 * mean)]


def _published_rows(
    published: Sequence[PublishedRow], table: PaperTable, names: Sequence[str], figure: str
) -> Iterator[tuple[PublishedRow, float | None]]:
    """Yield each system's first published row with that metric and protocol and a figure for the columns, and its mean.

    The mean is the printed one, which may differ from that of the printed columns; None if the paper prints no mean of
    exactly these columns.
    """
    seen = set()
    for row in published:
        mean = _printed_mean(row, table, names)
        shows = mean is not None or not row.values.keys().isdisjoint(names)
        if f"{row.metric}, {row.protocol}" == figure and shows and row.system not in seen:
            seen.add(row.system)
            yield row, mean


def _printed_mean(row: PublishedRow, table: PaperTable, names: Sequence[str]) -> float | None:
    if len(names) < len(table.columns):
        return None
    if table.divided is not None:
        return row.values.get(table.divided)
    return row.values.get(AVERAGE) if {*columns_of(row.suite)} == {*names, AVERAGE} else None


def _compared(
    row: PublishedRow, measured: Mapping[str, float], names: Sequence[str], mean: float | None
) -> tuple[list[str], list[str]]:
    """Return the cells of a published row, and of the difference; `mean` is its printed mean, if there is one."""
    gaps = {name: 100 * measured[name] - row.values[name] for name in names if name in measured and name in row.values}
    *_, average = with_mean(row.values, names)
    *differences, gap = with_mean(gaps, names)
    if mean is not None:
        average, (*_, own) = mean, with_mean(measured, names)
        gap = None if own is None else 100 * own - mean
    printed = [row.cells.get(name) or MISSING for name in names]
    return [*printed, fixed(average)], [fixed(value, "+.2f") for value in (*differences, gap)]
