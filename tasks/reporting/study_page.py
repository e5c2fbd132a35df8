"""The page of a study: what tells the points apart, the chart, every point on every set."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import polars as pl
from pydantic import BaseModel, ConfigDict

from models.evaluation.signature import signed
from models.evaluation.sweep import MEAN, verdict
from tasks.rendering.blocks import Charts, Page, Part, Prose, Table
from tasks.rendering.numbers import interval, p_value, spread

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tasks.rendering.svg import Chart

_LEGEND: Final = (
    "Figures × 100, mean over seeds ± standard deviation, with the 95 % interval of the hierarchical bootstrap over "
    "seeds and test pairs; of one seed, over test pairs alone. Difference is from the point that is named above, on "
    "the same draws of pairs, with p after Holm's correction for all comparisons of the table: told apart, above or "
    "below, only where its interval leaves out 0 and p is below 0.05. Figures of sets without scored pairs "
    "(accuracies, precisions, V-measures, argument facets) are not compared: their interval is Student's over seeds "
    "beside the set's own, and of seeds alone where a set has none."
)
_PREFERRED: Final = "spearman"
SYSTEMS: Final = "recipe"
"""The axis of a study whose points are systems, which have no order."""


class Point(BaseModel):
    """One configuration of a study."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    label: str
    """What tables call it."""
    line: str
    """The line of the plot that it is on; empty if there is only one."""
    place: str
    """Its place on the plot's horizontal axis."""
    published: float | None = None
    """The paper's figure × 100 at this point; None where none is printed."""
    faults: tuple[str, ...] = ()
    """Why runs of it left no figure."""


def study_page(
    title: str, table: pl.DataFrame, points: Sequence[Point], axis: str, shown: str, notes: Sequence[str]
) -> Page:
    """Return the page.

    Args:
        title: its heading.
        table: the table `study`.
        points: the configurations.
        axis: name of the setting; `recipe` if the points are systems.
        shown: the set on which points are told apart, as `shown_set` gives it.
        notes: further notes on the figures.
    """
    chart = study_chart(table, points, axis, shown)
    faults = faults_of(points)
    several = table["dataset"].n_unique() > 1
    return Page(
        title=title,
        word="",
        sentence=finding(table, shown),
        lead=[Charts([chart], lead=True)] if chart else [],
        parts=[
            Part(
                "All sets", [Table.of("Mean over seeds × 100 ± standard deviation", set_rows(table, faults))] * several
            ),
            *(Part(heading, [Table.of("Figures × 100", rows)]) for heading, rows in comparisons(table, shown, faults)),
            Part("Errors", [Prose(line) for line in fault_lines(faults)]),
            Part("How to read the figures", [*map(Prose, notes), Prose(_LEGEND, note=True)]),
        ],
    )


def finding(table: pl.DataFrame, shown: str) -> str:
    """Return which points are above and below each reference, and how many are not told apart from it.

    Args:
        table: the table `study`.
        shown: the set on which points are told apart.
    """
    sets = headline_sets(table, shown)
    return " ".join(line for name, rows in sets.items() for line in _findings(rows, name))


def _findings(own: pl.DataFrame, shown: str) -> Iterator[str]:
    for reference in own["reference"].drop_nulls().unique(maintain_order=True):
        rows = [row for row in own.filter(reference=reference).iter_rows(named=True) if row["difference"] is not None]
        named = {word: [_gap(row) for row in rows if verdict(row) == word] for word in ("above", "below")}
        said = [f"{word} {reference}: {', '.join(labels)}" for word, labels in named.items() if labels]
        same = len(rows) - sum(map(len, named.values()))
        said += [f"not told apart from {reference}: {same}"] if same else []
        if said:
            yield f"On {shown}, {'; '.join(said)}."


def _gap(row: Mapping[str, Any]) -> str:
    return f"{row['label']} ({signed(row['difference'], row['difference_low'], row['difference_high'])})"


def study_chart(table: pl.DataFrame, points: Sequence[Point], axis: str, shown: str) -> Chart | None:
    """Return the figure of each point on one set: along a setting, or a row per system; None without figures.

    Args:
        table: the table `study`.
        points: the configurations.
        axis: name of the setting.
        shown: the set.
    """
    from tasks.rendering.charts import Mark, mark_of, score_chart  # matplotlib
    from tasks.rendering.setting_chart import SettingPoint, setting_chart

    rows = {row["label"]: row for row in shown_rows(table, shown).drop_nulls("mean").iter_rows(named=True)}
    known = [point for point in points if point.label in rows]
    if not known:
        return None
    drawn = [rows[point.label] for point in known]
    marks = [mark_of(row["label"], "system", row["mean"], row["ci_low"], row["ci_high"]) for row in drawn]
    name = f"{shown}, × 100, with 95 % interval"
    if axis != SYSTEMS:
        along = zip(known, marks, strict=True)
        return setting_chart(
            [SettingPoint(point.line, point.place, mark, point.published) for point, mark in along], axis, name
        )
    printed = [Mark(f"{point.label} (published)", "published", point.published) for point in known if point.published]
    return score_chart([*marks, *printed], name)


def faults_of(points: Sequence[Point]) -> dict[str, str]:
    """Return label → why runs of that point left no figure."""
    return {point.label: "; ".join(point.faults) for point in points if point.faults}


def fault_lines(faults: Mapping[str, str]) -> list[str]:
    """A line a point of which runs left no figure."""
    return [f"{label}: no figure: {reason}" for label, reason in faults.items()]


def shown_set(table: pl.DataFrame, wanted: str | None) -> str:
    """The set that stands for a study: the wanted one, else the mean of all, else the last that most points have.

    Args:
        table: the table `study`.
        wanted: a declared name without its split; test sets follow development sets.
    """
    counts = dict(table.group_by("dataset", maintain_order=True).agg(pl.col("label").n_unique()).rows())
    names = [name for name, count in counts.items() if count == max(counts.values())]
    own = [name for name in names if wanted is not None and name.split(" ")[0] == wanted]
    own = own or [name for name in names if name == MEAN]
    tests = [name for name in names if not name.endswith(" dev")] or names
    compared = set(table.drop_nulls("reference")["dataset"])
    return str((own or [name for name in tests if name in compared] or tests)[-1])


def shown_rows(table: pl.DataFrame, shown: str) -> pl.DataFrame:
    """The rows of a set's first figure: Spearman where it has several, such as an accuracy and an F1.

    Args:
        table: the table `study`.
        shown: the set.
    """
    own = table.filter(dataset=shown)
    preferred = own.filter(metric=_PREFERRED)
    first = (preferred if preferred.height else own).row(0, named=True)
    return own.filter(metric=first["metric"], protocol=first["protocol"])


def headline_sets(table: pl.DataFrame, shown: str) -> dict[str, pl.DataFrame]:
    """Return name → rows of the set that is shown, and of one set per other metric that systems are compared by.

    Args:
        table: the table `study`.
        shown: the set.
    """
    own = shown_rows(table, shown)
    drawn = table.drop_nulls("reference").filter(pl.col("metric") != own["metric"][0])
    others = {}
    for rows in drawn.partition_by("metric", maintain_order=True):
        name = shown_set(rows, None)
        others[name if name != shown else f"{name} by {rows['metric'][0]}"] = rows.filter(dataset=name)
    return {shown: own, **others}


def set_rows(table: pl.DataFrame, faults: Mapping[str, str]) -> list[dict[str, str]]:
    """One row a point, one column a set: mean ± deviation, or why there is none.

    Args:
        table: the table `study`.
        faults: label → why runs of that point left no figure.
    """
    firsts = table.unique(["label", "dataset", "metric"], keep="first", maintain_order=True)
    columns = {(row["dataset"], row["metric"]): "–" for row in firsts.iter_rows(named=True)}
    lines: dict[str, dict[tuple[str, str], str]] = {}
    for row in firsts.iter_rows(named=True):
        lines.setdefault(row["label"], dict(columns))[row["dataset"], row["metric"]] = _cell(row, faults)
    heads = [name if metric == "spearman" else f"{name}, {metric}" for name, metric in columns]
    return [{"point": label} | dict(zip(heads, cells.values(), strict=True)) for label, cells in lines.items()]


def _cell(row: Mapping[str, Any], faults: Mapping[str, str]) -> str:
    """Mean ± deviation, or the first clause of why there is none."""
    if row["mean"] is None and row["label"] in faults:
        return re.split(r", expected|; | \(", faults[row["label"]])[0]
    return spread(row["mean"], row["sd"])


def comparisons(
    table: pl.DataFrame, shown: str, faults: Mapping[str, str]
) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """A heading and `figure_rows` for each point that the others are compared with."""
    for name, own in headline_sets(table, shown).items():
        head = f"{name} ({own['metric'][0]}, {own['protocol'][0]})"
        references = own["reference"].drop_nulls().unique(maintain_order=True).to_list()
        for reference in references:
            yield f"{head}, beside {reference}", figure_rows(own.filter(reference=reference), faults)
        if not references:
            yield head, figure_rows(own, faults)


def figure_rows(table: pl.DataFrame, faults: Mapping[str, str]) -> list[dict[str, str]]:
    """One row a row of the table `study`, of one set and reference, for people."""
    return [
        {
            "point": row["label"],
            "mean ± sd": _cell(row, faults),
            "95 % interval": interval(row["ci_low"], row["ci_high"]),
            "seeds": str(row["seeds"]),
            "difference": signed(row["difference"], None, None),
            "its interval": interval(row["difference_low"], row["difference_high"]),
            "p": p_value(row["p_value"]),
            "told apart": verdict(row) or "",
        }
        for row in table.iter_rows(named=True)
    ]
