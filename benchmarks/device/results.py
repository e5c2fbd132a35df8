"""Results of a bench as rows of two tables: checks, which may fail, and rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bsl.tasks.diagnostics.finding import Finding
from bsl.tasks.rendering.markdown import markdown_table

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Rate:
    """Speed of some work.

    Attributes:
        subject: the work.
        rate: units of work per second.
        unit: unit of the rate.
        share: share of the limit, 0 to 1; None if not stated.
        limit: name of the limit.
        ratio: ratio to the peer above it in the table; None for the peer itself, or without one.
    """

    subject: str
    rate: float
    unit: str
    share: float | None = None
    limit: str = ""
    ratio: float | None = None


def at_most(name: str, found: float, bound: float) -> Finding:
    """Check that a figure does not exceed a bound; NaN fails."""
    return Finding(name, "met" if found <= bound else "MISSED", f"{found:.2g} (≤ {bound:g})")


def at_least(name: str, found: float, bound: float) -> Finding:
    """Check that a share reaches a bound; NaN fails."""
    return Finding(name, "met" if found >= bound else "MISSED", f"{found:.4f} (≥ {bound:g})")


def holds(name: str, right: bool, found: str) -> Finding:
    """Check that a condition is true."""
    return Finding(name, "met" if right else "MISSED", found)


def not_run(name: str, why: str) -> Finding:
    """Return the row of a check that this machine cannot run."""
    return Finding(name, "not run", why)


def spelled(row: Finding | Rate) -> str:
    """Return a row as one line, printed while the others are still being measured."""
    if isinstance(row, Finding):
        return str(row)
    share = "" if row.share is None else f", {row.share:.1%} of {row.limit}"
    ratio = "" if row.ratio is None else f", {row.ratio:.2f} × peer"
    return f"{row.subject}: {row.rate:,.0f} {row.unit}{share}{ratio}"


def markdown(title: str, rows: Sequence[Finding | Rate]) -> str:
    """Return both tables as Markdown, without empty ones."""
    checks = [row.cells for row in rows if isinstance(row, Finding)]
    rates = [
        {
            "work": row.subject,
            "rate": f"{row.rate:,.0f} {row.unit}",
            "share of the limit": "" if row.share is None else f"{row.share:.1%} of {row.limit}",
            "× peer": "" if row.ratio is None else f"{row.ratio:.2f}",
        }
        for row in rows
        if isinstance(row, Rate)
    ]
    return "\n\n".join([title, *(markdown_table(table) for table in (checks, rates) if table)])
