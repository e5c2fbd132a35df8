"""Suggestions for misspelt names."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str], most: int = 1, prefix: str = "") -> str:
    """Return ` Did you mean 'tiny'?` with the known names closest to a misspelt one; empty if none is close."""
    nearest = [f"{prefix}{match}" for match in difflib.get_close_matches(name, list(known), n=most)]
    return f" Did you mean {' or '.join(map(repr, nearest))}?" if nearest else ""
