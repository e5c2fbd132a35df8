"""Recipes: complete configurations, each a function named like its recipe; look them up by name."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final, Literal

from bsl.flows.recipes.distillation import DISTILLATION, MULTILINGUAL
from bsl.flows.recipes.isbert import ISBERT, TRANSFER
from bsl.flows.recipes.paper import PAPER
from bsl.flows.recipes.plus import PLUS
from bsl.flows.recipes.supervised import SUPERVISED
from bsl.flows.recipes.tiny import TINY
from bsl.flows.recipes.transforms import POSTHOC
from bsl.flows.recipes.unsupervised import UNSUPERVISED
from bsl.flows.recipes.untrained import UNTRAINED
from bsl.storage.filesystem.spelling import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable

    from bsl.flows.config import PipelineConfig

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
        from bsl.flows.recipes.published_rows import ROWS  # reads the recipes

        is_row = f" It is a published row: bsl reproduce {shlex.quote(name)}." if name in ROWS else ""
        hint = is_row or did_you_mean(name, RECIPES)
        raise UnknownRecipeError(f"unknown recipe {name!r}.{hint} `bsl recipes` lists all {len(RECIPES)} recipes")
    return RECIPES[name]()
