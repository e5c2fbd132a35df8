"""Recipes of what learns from people's labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from flows.config import PipelineConfig

SUPERVISED: Final[tuple[Callable[[], PipelineConfig], ...]] = ()
