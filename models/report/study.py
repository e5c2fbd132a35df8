"""The page of a study: one table of all points on all sets, and the plot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from models.report.page import markdown_table

if TYPE_CHECKING:
    import polars as pl

_LEGEND: Final = (
    "Figures × 100, mean over seeds ± standard deviation, with the 95 % interval of the hierarchical bootstrap over "
    "seeds and test pairs; of one seed, over test pairs alone. *Difference* is from the first line, on the same draws "
    "of pairs, with p after Holm's correction: above or below only where its interval leaves out 0."
)


def study_page(title: str, table: pl.DataFrame, plot: str) -> str:
    """The page as GitHub-flavoured Markdown.

    Args:
        title: its heading.
        table: the table `study`.
        plot: file name of the plot beside the page.
    """
    return f"# {title}\n\n![plot]({plot})\n\n{markdown_table(figure_rows(table))}\n\n{_LEGEND}\n"


def figure_rows(table: pl.DataFrame) -> list[dict[str, str]]:
    """One row a point and set, for people."""
    return [
        {
            "point": row["label"],
            "set": row["dataset"],
            "figure": f"{row['metric']}, {row['protocol']}",
            "mean ± sd": _mean(row),
            "95 % interval": _interval(row["ci_low"], row["ci_high"]),
            "seeds": str(row["seeds"]),
            "difference": "" if row["difference"] is None else f"{100 * row['difference']:+.2f}",
            "its interval": _interval(row["difference_low"], row["difference_high"]),
            "p": "" if row["p_value"] is None else f"{row['p_value']:.3f}",
            "told apart": _verdict(row),
        }
        for row in table.iter_rows(named=True)
    ]


def _mean(row: dict[str, float | None]) -> str:
    spread = "" if row["sd"] is None else f" ± {100 * row['sd']:.2f}"
    return f"{100 * (row['mean'] or 0.0):.2f}{spread}"


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"[{100 * low:.2f}, {100 * high:.2f}]"


def _verdict(row: dict[str, float | None]) -> str:
    low, high = row["difference_low"], row["difference_high"]
    if low is None or high is None:
        return ""
    return "above" if low > 0 else "below" if high < 0 else "no"
