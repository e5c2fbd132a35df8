"""The page of a study: every point on every set, what tells the points apart, and the plot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from models.evaluation.study import MEAN, verdict
from models.report.escaping import plain
from models.report.page import markdown_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_LEGEND: Final = (
    "Figures × 100, mean over seeds ± standard deviation, with the 95 % interval of the hierarchical bootstrap over "
    "seeds and test pairs; of one seed, over test pairs alone. *Difference* is from the point that is named above, on "
    "the same draws of pairs, with p after Holm's correction for all comparisons of the table: told apart, above or "
    "below, only where its interval leaves out 0 and p is below 0.05. Figures of sets without scored pairs "
    "(accuracies, precisions, V-measures, argument facets) are not compared: their interval is Student's over seeds "
    "beside the set's own, and of seeds alone where a set has none."
)
_PREFERRED: Final = "spearman"


def study_page(
    title: str, table: pl.DataFrame, plot: str, shown: str, faults: Mapping[str, str], notes: Sequence[str]
) -> str:
    """The page as GitHub-flavoured Markdown.

    Args:
        title: its heading.
        table: the table `study`.
        plot: file name of the plot beside the page.
        shown: the set on which points are told apart, as `shown_set` gives it.
        faults: label → why runs of that point left no figure.
        notes: what else is to be said of the figures.
    """
    sections = [f"# {plain(title)}", f"![plot]({plot})"]
    if table["dataset"].n_unique() > 1:
        sections.append(f"## All sets\n\n{markdown_table(set_rows(table))}")
    sections += [f"## {heading}\n\n{markdown_table(rows)}" for heading, rows in comparisons(table, shown)]
    if faults:
        lines = [f"- {plain(line)}" for line in fault_lines(faults)]
        sections.append("## What went wrong\n\n" + "\n".join(lines))
    return "\n\n".join([*sections, *notes, _LEGEND]) + "\n"


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


def set_rows(table: pl.DataFrame) -> list[dict[str, str]]:
    """One row a point, one column a set: mean ± deviation."""
    firsts = table.unique(["label", "dataset", "metric"], keep="first", maintain_order=True)
    columns = {(row["dataset"], row["metric"]): "–" for row in firsts.iter_rows(named=True)}
    lines: dict[str, dict[tuple[str, str], str]] = {}
    for row in firsts.iter_rows(named=True):
        lines.setdefault(row["label"], dict(columns))[row["dataset"], row["metric"]] = _mean(row)
    heads = [name if metric == "spearman" else f"{name}, {metric}" for name, metric in columns]
    return [{"point": label} | dict(zip(heads, cells.values(), strict=True)) for label, cells in lines.items()]


def comparisons(table: pl.DataFrame, shown: str) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """A heading and `figure_rows` for each point that the others are compared with."""
    own = shown_rows(table, shown)
    head = f"{shown} ({own['metric'][0]}, {own['protocol'][0]})"
    references = own["reference"].drop_nulls().unique(maintain_order=True).to_list()
    for reference in references:
        yield f"{head}, beside {plain(reference)}", figure_rows(own.filter(reference=reference))
    if not references:
        yield head, figure_rows(own)


def figure_rows(table: pl.DataFrame) -> list[dict[str, str]]:
    """One row a row of the table `study`, of one set and reference, for people."""
    return [
        {
            "point": row["label"],
            "mean ± sd": _mean(row),
            "95 % interval": _interval(row["ci_low"], row["ci_high"]),
            "seeds": str(row["seeds"]),
            "difference": "" if row["difference"] is None else f"{100 * row['difference']:+.2f}",
            "its interval": _interval(row["difference_low"], row["difference_high"]),
            "p": "" if row["p_value"] is None else f"{row['p_value']:.3f}",
            "told apart": verdict(row) or "",
        }
        for row in table.iter_rows(named=True)
    ]


def _mean(row: dict[str, float | None]) -> str:
    if row["mean"] is None:
        return "no figure"
    spread = "" if row["sd"] is None else f" ± {100 * row['sd']:.2f}"
    return f"{100 * row['mean']:.2f}{spread}"


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"[{100 * low:.2f}, {100 * high:.2f}]"
