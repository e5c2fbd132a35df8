"""The page of an evaluation: the papers' tables, every figure with its interval, differences, what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from models.report.page import markdown_table, score_rows
from models.report.tables import paper_tables

if TYPE_CHECKING:
    from collections.abc import Mapping


def evaluation_page(scores: pl.DataFrame, comparison: pl.DataFrame | None, missing: Mapping[str, str]) -> str:
    """The page as GitHub-flavoured Markdown."""
    sections = ["# Evaluation"]
    sections += [f"## {title}\n\n{markdown_table(rows)}" for title, rows in paper_tables(scores)]
    sections.append(
        "## Intervals\n\nSpearman's ρ × 100, protocol `all`, with 95 % bootstrap intervals.\n\n"
        + markdown_table(score_rows(scores))
    )
    if comparison is not None:
        sections.append(differences(comparison))
    if missing:
        lines = [f"- {name}: {reason}" for name, reason in missing.items()]
        sections.append("## Missing\n\nNot scored, and not part of any average:\n\n" + "\n".join(lines))
    return "\n\n".join(sections) + "\n"


def differences(comparison: pl.DataFrame) -> str:
    """The section on paired differences."""
    return (
        "## Differences\n\nSpearman's ρ × 100 on the same draws of pairs, with 95 % interval and two-sided p.\n\n"
        + markdown_table(difference_rows(comparison))
    )


def difference_rows(comparison: pl.DataFrame) -> list[dict[str, str]]:
    """One row a pair of systems and a set: difference × 100, interval, p."""
    rows = comparison.filter(metric="spearman").to_dicts()
    return [
        {
            "system": row["model"],
            "compared with": row["reference"],
            "set": f"{row['dataset']} {row['split']}",
            "difference": f"{100 * row['value']:+.2f} [{100 * row['ci_low']:+.2f}, {100 * row['ci_high']:+.2f}]",
            "p": f"{row['p_value']:.3f}",
        }
        for row in rows
    ]
