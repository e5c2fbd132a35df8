"""The page of a reproduction: the verdict, why it is no comparison if it is none, and the figures side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from models.report.escaping import code, plain
from models.report.page import markdown_table
from models.report.tables import MISSING

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    sections.append(f"## Figures × 100\n\n{markdown_table(figure_rows(figures))}\n\n{_LEGEND}")
    lines = [line for line in figures["signature"] if line]
    sections.append("## Signatures\n\n" + ("\n".join(f"- {code(line)}" for line in lines) or "none"))
    return "\n\n".join(sections) + "\n"


_LEGEND: Final = (
    "`sd`: over seeds. `interval`: 95 %, of seeds and pairs together; of pairs alone for one seed. REPRODUCED: the "
    "published figure lies in the interval, or no more than 1.00 away."
)


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
            "interval": MISSING if row["value"] is None else f"[{row['ci_low']:.2f}, {row['ci_high']:.2f}]",
            "seeds": str(row["seeds"]),
            "verdict": row["verdict"],
        }
        for row in figures.iter_rows(named=True)
    ]


def _number(value: float | None) -> str:
    return MISSING if value is None else f"{value:.2f}"
