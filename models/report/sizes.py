"""Sizes as a person reads them."""

from __future__ import annotations


def sized(count: float) -> str:
    """Bytes in the unit that leaves one to three digits before the point: `730 B`, `4.1 kB`, `3.4 MB`, `1.8 GB`."""
    if count < 999.5:
        return f"{count:.0f} B"
    for unit in ("kB", "MB", "GB"):  # noqa: B007 - the last one that was tried stays
        count /= 1000
        if count < 999.95:
            break
    return f"{count:.1f} {unit}"
