"""Score tables in the papers' layout: fixed columns, × 100, an average only if every column has a score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from models.evaluation.signature import joint_signature
from storage.record import Record
from tasks.rendering.blocks import Row, Table
from tasks.rendering.numbers import MISSING
from tasks.rendering.score_tables import figure_cell

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

    from models.evaluation.published import PublishedRow

    Figures = Mapping[str, Mapping[str, Any]]


class PaperTable(Record):
    """Layout of a published table; each kind of evaluation lists its tables."""

    title: str
    """Title of the table."""
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
    | {MISSING: "--"}
)
_COLUMN: Final = pl.when(subset="all").then("dataset").otherwise(pl.concat_str("dataset", "subset", separator="/"))
_OVER_SUBSETS: Final = ("mean", "wmean")


def paper_tables(scores: pl.DataFrame, tables: Iterable[PaperTable]) -> list[tuple[str, list[dict[str, str]]]]:
    """Return title and rows of every table with at least one score; a row with a missing score has no average."""
    filled = [(table.title, _rows(table, scores)) for table in tables]
    return [(title, rows) for title, rows in filled if rows]


def paper_signatures(scores: pl.DataFrame, tables: Iterable[PaperTable]) -> dict[str, list[str]]:
    """Return title → `system, figure: signature` for every row of `paper_tables`."""
    lines = {table.title: [_footnote(*line) for line in paper_lines(table, scores)] for table in tables}
    return {title: notes for title, notes in lines.items() if notes}


def as_latex(title: str, rows: list[dict[str, str]], notes: Iterable[str] = ()) -> str:
    """Return a table as a LaTeX `tabular` (booktabs), with title and notes as comments above it."""
    names = list(rows[0])
    lines = [" & ".join(map(_escaped, line)) + r" \\" for line in (names, *(row.values() for row in rows))]
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


def _rows(table: PaperTable, scores: pl.DataFrame) -> list[dict[str, str]]:
    return [
        {"system": model, "figure": figure, **_cells(table, {name: row["value"] for name, row in figures.items()})}
        for (model, figure), figures in paper_lines(table, scores)
    ]


def _shown(table: PaperTable, dataset: str, protocol: str) -> str:
    return "all" if protocol in _OVER_SUBSETS and dataset in table.undivided else protocol


def _footnote(line: tuple[str, str], figures: Mapping[str, Mapping[str, Any]]) -> str:
    return f"{', '.join(line)}: {joint_signature([row['signature'] for row in figures.values()])}"


def _cells(table: PaperTable, values: Mapping[str, float]) -> dict[str, str]:
    mean = sum(values.values()) / len(values) if len(values) == len(table.columns) else None
    cells = {heading: values.get(name) for name, heading in table.columns} | {table.average: mean}
    return {name: MISSING if value is None else f"{100 * value:.2f}" for name, value in cells.items()}


def _escaped(text: str) -> str:
    return text.translate(_LATEX)


def tables_of(
    scores: pl.DataFrame, tables: Sequence[PaperTable], published: Sequence[PublishedRow], result: str
) -> Iterator[Table]:
    """Yield the papers' tables of the scored sets, with published rows and the differences from them below.

    Args:
        scores: The table `scores`.
        tables: Layouts of the papers' tables.
        published: Published rows to show.
        result: The system to compare with the published rows.
    """
    for table in tables:
        lines = list(paper_lines(table, scores))
        columns = [(name, heading) for name, heading in table.columns if any(name in line for _, line in lines)]
        if not columns:
            continue
        complete = len(columns) == len(table.columns) > 1
        mean = table.divided if complete else None
        heads = ["system", "figure", *(heading for _, heading in columns), *([table.average] if complete else [])]
        names = [name for name, _ in columns]
        rows = [Row([model, figure, *_measured(line, names, complete=complete)]) for (model, figure), line in lines]
        for (model, figure), line in lines:
            if model == result:
                rows += [
                    both
                    for row in _published_rows(published, {*names, mean}, figure)
                    for both in (
                        _printed(row, names, mean, complete=complete),
                        _difference(row, line, names, mean, complete=complete),
                    )
                ]
        yield Table(f"{table.title}: figures × 100 with 95 % interval", heads, rows, brief=True)


def _measured(line: Figures, names: Sequence[str], *, complete: bool) -> Iterator[str]:
    for name in names:
        row = line.get(name)
        yield MISSING if row is None else figure_cell(row)
    if complete:
        mean = _mean([row["value"] for row in line.values()]) if set(names) <= set(line) else None
        yield MISSING if mean is None else f"{100 * mean:.2f}"


def _published_rows(published: Sequence[PublishedRow], names: Set[str | None], figure: str) -> list[PublishedRow]:
    """Return each system's first published row with that metric and protocol and at least one of the columns."""
    rows: dict[str, PublishedRow] = {}
    for row in published:
        if f"{row.metric}, {row.protocol}" == figure and names & set(row.values):
            rows.setdefault(row.system, row)
    return list(rows.values())


def _printed(row: PublishedRow, names: Sequence[str], mean: str | None, *, complete: bool) -> Row:
    cells = [row.cells.get(name) or MISSING for name in names]
    if complete:
        average = _mean([row.values[name] for name in names]) if set(names) <= set(row.values) else None
        if mean in row.values:
            average = row.values[mean]
        cells.append(MISSING if average is None else f"{average:.2f}")
    return Row([f"{row.system}: {row.source}", "published", *cells], "published")


def _difference(row: PublishedRow, line: Figures, names: Sequence[str], mean: str | None, *, complete: bool) -> Row:
    gaps = {name: 100 * line[name]["value"] - row.values[name] for name in names if name in line and name in row.values}
    cells = [f"{gaps[name]:+.2f}" if name in gaps else MISSING for name in names]
    if complete:
        average = _mean(list(gaps.values())) if len(gaps) == len(names) else None
        if mean in row.values and set(names) <= set(line):
            average = 100 * _mean([line[name]["value"] for name in names]) - row.values[mean]
        cells.append(MISSING if average is None else f"{average:+.2f}")
    return Row([f"this run minus {row.system}", "difference", *cells], "difference")


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
