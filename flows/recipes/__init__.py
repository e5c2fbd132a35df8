"""Recipes: complete configurations, one per published row or use, named after the functions that return them."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final, Literal

from flows.recipes.distillation import DISTILLATION, MULTILINGUAL
from flows.recipes.isbert import ISBERT, TRANSFER
from flows.recipes.paper import PAPER
from flows.recipes.plus import PLUS
from flows.recipes.supervised import SUPERVISED
from flows.recipes.tiny import TINY
from flows.recipes.transforms import POSTHOC
from flows.recipes.unsupervised import UNSUPERVISED
from flows.recipes.untrained import UNTRAINED

if TYPE_CHECKING:
    from collections.abc import Callable

    from flows.config import PipelineConfig

_ALL: Final[tuple[Callable[[], PipelineConfig], ...]] = (
    *TINY, *PAPER, *UNTRAINED, *POSTHOC, *UNSUPERVISED, *ISBERT, *TRANSFER, *SUPERVISED, *MULTILINGUAL, *DISTILLATION,
    *PLUS,
)  # fmt: skip
RECIPES: Final = {make.__name__.replace("_", "-"): make for make in _ALL}

if TYPE_CHECKING:
    RecipeName = str
else:
    RecipeName = Literal[tuple(RECIPES)]  # Prefect's run form lists these names


class UnknownRecipeError(ValueError):
    """No recipe has that name."""


def recipe(name: str) -> PipelineConfig:
    """Return the configuration of a recipe.

    Raises:
        UnknownRecipeError: No recipe has that name; the message suggests the closest one.
    """
    if name not in RECIPES:
        nearest = difflib.get_close_matches(name, RECIPES, n=1)
        hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
        raise UnknownRecipeError(
            f"no recipe is called {name!r}; `bsl recipes` lists the {len(RECIPES)} that there are.{hint}"
        )
    return RECIPES[name]()
