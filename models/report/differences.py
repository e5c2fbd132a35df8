"""A difference as every page prints it."""

from __future__ import annotations


def signed(value: float, low: float | None, high: float | None) -> str:
    """`value × 100 [low, high]`, each with its sign; the value alone where it has no interval."""
    ends = "" if low is None or high is None else f" [{100 * low:+.2f}, {100 * high:+.2f}]"
    return f"{100 * value:+.2f}{ends}"
