"""Recipes by name, with changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flows.config import override
from flows.recipes import RECIPES
from flows.recipes import recipe as as_written

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from flows.config import PipelineConfig


def recipe(name: str, changes: Mapping[str, Any] | None = None) -> PipelineConfig:
    """Return the complete configuration of a recipe.

    Args:
        name: One of `recipes()`.
        changes: Fields to change, nested as in the configuration; all others stay.

    Raises:
        UnknownRecipeError: No recipe has that name; the message suggests the closest one.
        ValueError: A field does not exist or cannot have that value; the message suggests the nearest field.

    Example:
        >>> recipe("tiny", {"training": {"max_steps": 50}}).phases[-1].training.max_steps
        50
    """
    return override(as_written(name), dict(changes or {}))


def recipes() -> list[str]:
    """Return the names of all recipes: published rows, and the project's own.

    Example:
        >>> "nli" in recipes()
        True
    """
    return list(RECIPES)
