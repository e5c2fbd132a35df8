"""Look up recipes by name, and change their fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bsl.flows.config import override
from bsl.flows.recipes import RECIPES
from bsl.flows.recipes import recipe as find_recipe
from bsl.storage.filesystem.values import require_name

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from bsl.flows.config import PipelineConfig


def recipe(name: str, changes: Mapping[str, Any] | None = None) -> PipelineConfig:
    """Return the complete configuration of a recipe.

    Args:
        name: One of `recipes()`.
        changes: Fields to change, nested as in the configuration.

    Raises:
        UnknownRecipeError: No recipe has that name; the message suggests the closest one.
        ValueError: A field is unknown or has an invalid value; the message suggests the closest field.

    Example:
        >>> recipe("tiny", {"training": {"max_steps": 50}}).phases[-1].training.max_steps
        50
    """
    return override(find_recipe(require_name(name, "the recipe")), dict(changes or {}))


def recipes() -> list[str]:
    """Return the names of all recipes: those of published rows, and the project's own.

    Example:
        >>> "nli" in recipes()
        True
    """
    return list(RECIPES)
