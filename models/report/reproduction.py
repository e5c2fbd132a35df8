"""The page of a reproduction: the verdict, why it is no comparison if it is none, and the figures side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from models.evaluation.reproduction import MOST
from models.report.escaping import code, plain
from models.report.page import markdown_table
from models.report.tables import MISSING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl


def reproduction_page(row: str, verdict: str, reasons: Sequence[str], figures: pl.DataFrame) -> str:
    """The page as GitHub-flavoured Markdown.

    Args:
        row: the published row's name.
        verdict: on the row as a whole.
        reasons: why the run and the row cannot be compared.
        figures: the table `reproduction`.
    """
    sections = [f"# {plain(row)}: {plain(verdict)}"]
    if reasons:
        sections.append(
            "Not comparable with the published row, for:\n\n" + "\n".join(f"- {plain(why)}" for why in reasons)
        )
    if verdict == "INCONCLUSIVE":
        sections.append(_settling(figures))
    sections.append(f"## Figures × 100\n\n{markdown_table(figure_rows(figures))}\n\n{_LEGEND}")
    lines = [line for line in figures["signature"] if line]
    sections.append("## Signatures\n\n" + ("\n".join(f"- {code(line)}" for line in lines) or "none"))
    return "\n\n".join(sections) + "\n"


_LEGEND: Final = (
    "`sd`: over seeds. `90 % over seeds`: Student's interval of the mean, which decides. REPRODUCED: it lies within "
    "the margin of the published figure, which was set before the runs. BELOW, ABOVE: all of it lies beyond the "
    "margin, on that side. INCONCLUSIVE: neither; `seeds to settle` says how many would be enough if mean and sd "
    "stay as they are. `95 % with pairs`: seeds and pairs together, of pairs alone for one seed; it takes no part in "
    "the verdict, since the published figure was measured on the same pairs."
)


def _settling(figures: pl.DataFrame) -> str:
    """How many seeds would end what is INCONCLUSIVE."""
    open_ones = [row for row in figures.iter_rows(named=True) if row["verdict"] == "INCONCLUSIVE"]
    if any(row["seeds"] == 1 for row in open_ones):
        return "One seed has no spread, so there is no verdict yet: run two or more, for example `--seeds 5`."
    counts = [row["seeds_needed"] for row in open_ones]
    if None in counts:
        return (
            f"A figure differs from the published one by nearly the margin: more than {MOST:,} seeds would settle it."
        )
    return f"About {max(counts)} seeds would settle it, if means and spreads stay as they are: `--seeds {max(counts)}`."


def figure_rows(figures: pl.DataFrame) -> list[dict[str, str]]:
    """One row a published cell: published, measured, their difference, the interval, the verdict."""
    return [
        {
            "set": row["dataset"],
            "figure": f"{row['metric']}, {row['protocol']}",
            "published": f"{row['published']:.2f}",
            "measured": _number(row["value"]),
            "difference": MISSING if row["value"] is None else f"{row['value'] - row['published']:+.2f}",
            "sd": _number(row["sd"]),
            "95 % with pairs": _interval(row["ci_low"], row["ci_high"]),
            "seeds": str(row["seeds"]),
            "90 % over seeds": _interval(row["seeds_low"], row["seeds_high"]),
            "margin": f"{row['margin']:.2f}",
            "verdict": row["verdict"],
            "seeds to settle": _needed(row),
        }
        for row in figures.iter_rows(named=True)
    ]


def _interval(low: float | None, high: float | None) -> str:
    return MISSING if low is None or high is None else f"[{low:.2f}, {high:.2f}]"


def _needed(row: Mapping[str, Any]) -> str:
    if row["verdict"] != "INCONCLUSIVE":
        return MISSING
    if row["seeds"] == 1:
        return f"at least {row['seeds_needed']}"
    return f"more than {MOST:,}" if row["seeds_needed"] is None else f"about {row['seeds_needed']}"


def _number(value: float | None) -> str:
    return MISSING if value is None else f"{value:.2f}"
