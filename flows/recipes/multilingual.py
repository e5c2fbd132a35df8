"""Recipes of distillation across languages and from larger encoders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from flows.config import PipelineConfig

MULTILINGUAL: Final[tuple[Callable[[], PipelineConfig], ...]] = ()
