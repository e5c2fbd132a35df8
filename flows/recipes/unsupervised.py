"""Recipes of what learns from sentences alone, beside BSL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from flows.config import PipelineConfig

UNSUPERVISED: Final[tuple[Callable[[], PipelineConfig], ...]] = ()
