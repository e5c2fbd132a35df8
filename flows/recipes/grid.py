"""From a study, or a recipe and fields with several values, to one configuration a point."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from flows.config import PipelineConfig, override
from flows.recipes import RECIPES, recipe
from flows.recipes.studies import STUDIES, Study, study
from models.evaluation.published import rows_of
from tasks.study import Point

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RECIPE: Final = "recipe"
"""The axis whose values are recipes."""


@dataclass(frozen=True)
class Grid:
    """What a sweep runs.

    Attributes:
        title: of its page.
        axis: the plot's horizontal axis.
        points: what tables and the plot call each configuration.
        configs: the configurations, in the order of `points`.
    """

    title: str
    axis: str
    points: tuple[Point, ...]
    configs: tuple[PipelineConfig, ...]


def grid(name: str, over: Mapping[str, Sequence[Any]], changes: Mapping[str, Any]) -> Grid:
    """All combinations of the axes' values.

    Args:
        name: a declared study, or a recipe.
        over: field → values; of a study, in the place of its own.
        changes: other changes to every point.

    Raises:
        ValueError: there is no such study, recipe or field; an axis has no value, or the same one twice; a point fits
            a transform on each set.
    """
    declared = _declared(name, over)
    axes = {field: tuple(values) for field, values in (over or declared.over).items()}
    for field, values in axes.items():
        if not values or len(set(map(str, values))) < len(values):
            raise ValueError(f"{field}: found values {list(values)}, expected one or more, each once")
    combinations = list(itertools.product(*axes.values()))
    configs = [_configured(declared, dict(zip(axes, values, strict=True)), changes) for values in combinations]
    points = [_point(declared, tuple(axes), values, own=not over) for values in combinations]
    return Grid(declared.title, list(axes)[-1], tuple(points), tuple(configs))


def _declared(name: str, over: Mapping[str, Sequence[Any]]) -> Study:
    if name in RECIPES and name not in STUDIES:
        if not over:
            raise ValueError(f"{name} is a recipe, of which nothing is to be varied; give --over FIELD=VALUE,VALUE")
        return Study(f"{name} over {' and '.join(over)}", name, {})
    return study(name)


def _configured(declared: Study, values: Mapping[str, Any], changes: Mapping[str, Any]) -> PipelineConfig:
    config = override(recipe(values.get(RECIPE, declared.recipe)), declared.changes)
    config = override(config, changes)
    for field, value in values.items():
        if field != RECIPE:
            config = override(config, _nested(field, value))
    if config.transform is not None and config.transform_on == "targets":
        raise ValueError(
            f"{config.title}: a transform of its own for each set has no one system to compare over seeds; expected "
            "transform_on=corpus; leave this point out, or run the recipe by itself"
        )
    return config


def _nested(field: str, value: Any) -> dict[str, Any]:  # noqa: ANN401 - whatever the field takes
    *parents, last = field.split(".")
    # Its name alone chooses an objective.
    changes: dict[str, Any] = {last: {"name": value} if last == "objective" and isinstance(value, str) else value}
    for parent in reversed(parents):
        changes = {parent: changes}
    return changes


def _point(declared: Study, axes: Sequence[str], values: tuple[Any, ...], *, own: bool) -> Point:
    pairs = zip(axes, values, strict=True)
    names = [str(value) if field == RECIPE else f"{field.rpartition('.')[2]} {value}" for field, value in pairs]
    published = declared.row(values) if own and declared.row else None
    return Point(
        label=", ".join(names),
        line=", ".join(names[:-1]),
        place=str(values[-1]),
        published=_figure(published, declared.column) if published else None,
    )


def _figure(row: str, column: str) -> float | None:
    figures = [published.values[column] for published in rows_of(row) if column in published.values]
    return figures[0] if figures else None
