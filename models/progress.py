"""How long work tells what it has done."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

OnProgress: TypeAlias = Callable[[int, int, str], None]
"""Called as (done, in all, detail)."""
