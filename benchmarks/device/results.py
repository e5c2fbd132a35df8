"""Results of a bench as rows of two tables: checks, which may fail, and rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from bsl.tasks.rendering.markdown import markdown_table

if TYPE_CHECKING:
    from collections.abc import Sequence

Verdict = Literal["met", "MISSED", "not run"]


@dataclass(frozen=True)
class Check:
    """A condition that must be true.

    Attributes:
        name: quantity that is checked.
        found: the figure, or why it could not be measured.
        bound: upper or lower bound.
        verdict: whether the bound is met.
    """

    name: str
    found: str
    bound: str
    verdict: Verdict


@dataclass(frozen=True)
class Rate:
    """Speed of some work.

    Attributes:
        name: the work.
        rate: units of work per second.
        unit: unit of the rate.
        share: share of the limit, 0 to 1; None if not stated.
        limit: name of the limit.
        ratio: ratio to the peer above it in the table; None for the peer itself, or without one.
    """

    name: str
    rate: float
    unit: str
    share: float | None = None
    limit: str = ""
    ratio: float | None = None


def at_most(name: str, found: float, bound: float) -> Check:
    """Check that a figure does not exceed a bound; NaN fails."""
    return Check(name, f"{found:.2g}", f"≤ {bound:g}", "met" if found <= bound else "MISSED")


def at_least(name: str, found: float, bound: float) -> Check:
    """Check that a share reaches a bound; NaN fails."""
    return Check(name, f"{found:.4f}", f"≥ {bound:g}", "met" if found >= bound else "MISSED")


def holds(name: str, right: bool, found: str) -> Check:
    """Check that a condition is true."""
    return Check(name, found, "true", "met" if right else "MISSED")


def not_run(name: str, why: str) -> Check:
    """Return the row of a check that this machine cannot run."""
    return Check(name, why, "", "not run")


def spelled(row: Check | Rate) -> str:
    """Return a row as one line, printed while the others are still being measured."""
    if isinstance(row, Check):
        return f"{row.verdict}: {row.name}: {row.found}{f' ({row.bound})' if row.bound else ''}"
    share = "" if row.share is None else f", {row.share:.1%} of {row.limit}"
    ratio = "" if row.ratio is None else f", {row.ratio:.2f} × peer"
    return f"{row.name}: {row.rate:,.0f} {row.unit}{share}{ratio}"


def markdown(title: str, rows: Sequence[Check | Rate]) -> str:
    """Return both tables as Markdown, without empty ones."""
    checks = [
        {"check": row.name, "found": row.found, "bound": row.bound, "": row.verdict}
        for row in rows
        if isinstance(row, Check)
    ]
    rates = [
        {
            "work": row.name,
            "rate": f"{row.rate:,.0f} {row.unit}",
            "share of the limit": "" if row.share is None else f"{row.share:.1%} of {row.limit}",
            "× peer": "" if row.ratio is None else f"{row.ratio:.2f}",
        }
        for row in rows
        if isinstance(row, Rate)
    ]
    return "\n\n".join([title, *(markdown_table(table) for table in (checks, rates) if table)])
