"""Recipes of encoders that are scored as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from flows.config import PipelineConfig

UNTRAINED: Final[tuple[Callable[[], PipelineConfig], ...]] = ()
