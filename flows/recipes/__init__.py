"""Recipes: complete configurations, each a function named like its recipe; look them up by name."""

from __future__ import annotations

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
from storage.filesystem.spelling import did_you_mean

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
        hint = did_you_mean(name, RECIPES)
        raise UnknownRecipeError(f"unknown recipe {name!r}.{hint} `bsl recipes` lists all {len(RECIPES)} recipes")
    return RECIPES[name]()
