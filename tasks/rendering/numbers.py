"""Format scores, intervals, p-values and sizes for pages."""

from __future__ import annotations

from typing import Final

MISSING: Final = "–"


def shown(value: object) -> str:
    """Format a value for a table cell: floats rounded, thousands separated."""
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def fixed(value: float | None, form: str = ".2f") -> str:
    """Format a number, with two decimals unless the form says otherwise; a dash for None."""
    return MISSING if value is None else f"{value:{form}}"


def spread(mean: float | None, sd: float | None) -> str:
    """Format a mean over seeds × 100, with its standard deviation if given; a dash for None."""
    if mean is None:
        return MISSING
    return f"{100 * mean:.2f}{'' if sd is None else f' ± {100 * sd:.2f}'}"


def interval(low: float | None, high: float | None) -> str:
    """Return `[low, high]` × 100; empty if a bound is missing."""
    return "" if low is None or high is None else f"[{100 * low:.2f}, {100 * high:.2f}]"


def p_value(value: float | None, draws: int | None = None, comparisons: int = 1) -> str:
    """Return p as `p_text`, a bound if it is the smallest of a number of draws and comparisons; empty for None."""
    # These modules import Polars, which the help of commands does not need.
    from bsl.models.evaluation.signature import p_text
    from bsl.models.evaluation.sweep import smallest_p

    if value is None:
        return ""
    return p_text(value, smallest_p(draws, comparisons) if draws else 0.0)


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: `1 seed`, `1,024 seeds`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def sized(count: float) -> str:
    """Return bytes in the unit that leaves one to three digits before the point: `730 B`, `4.1 kB`, `1.8 GB`."""
    if count < 999.5:
        return f"{count:.0f} B"
    for unit in ("kB", "MB", "GB"):  # noqa: B007 - used after the loop
        count /= 1000
        if count < 999.95:
            break
    return f"{count:.1f} {unit}"
