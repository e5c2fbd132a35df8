"""Look up recipes by name, and change their fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bsl.flows.config import PipelineConfig, override
from bsl.flows.recipes import RECIPES
from bsl.flows.recipes import recipe as find_recipe
from bsl.storage.filesystem.values import described, require_name

if TYPE_CHECKING:
    from typing import Any


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
    return override(find_recipe(require_name(name, "the recipe")), fields_of(changes))


def configured(config: str | PipelineConfig, changes: Mapping[str, Any] | None = None) -> PipelineConfig:
    """Return the complete configuration of a recipe's name or of a configuration, with changes.

    Raises:
        TypeError: It is neither.
        UnknownRecipeError, ValueError: As for `recipe`.
    """
    if isinstance(config, str):
        return recipe(config, changes)
    if not isinstance(config, PipelineConfig):
        raise TypeError(f"config is {described(config)}, expected the name of a recipe or a configuration")
    return override(config, fields_of(changes))


def fields_of(changes: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return fields to change as a dictionary.

    Raises:
        TypeError: They are no mapping.
    """
    if not isinstance(changes, Mapping | None):
        raise TypeError(
            f"changes is {described(changes)}, expected a dictionary of fields, such as "
            '{"training": {"max_steps": 50}}'
        )
    return dict(changes or {})


def recipes() -> list[str]:
    """Return the names of all recipes: those of published rows, and the project's own.

    Example:
        >>> "nli" in recipes()
        True
    """
    return list(RECIPES)
