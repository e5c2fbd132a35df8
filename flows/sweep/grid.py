"""Expand a study, or a recipe and fields with several values, into one configuration per point."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from flows.config import PipelineConfig, nested, override
from flows.recipes import RECIPES, recipe
from flows.sweep.studies import STUDIES, Study, study
from models.evaluation.published import AVERAGE, rows_of
from tasks.reporting.sweep.system import SweepSystem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from models.training.config import TrainingConfig

RECIPE: Final = "recipe"
"""Axis with recipes as values."""
VARIANT: Final = "variant"
"""Axis with a study's named changes as values."""
_NAMES: Final = (RECIPE, VARIANT)  # axes of names, not of a field's values
_TRAINING: Final = "training"


@dataclass(frozen=True)
class Grid:
    """Points and configurations of a sweep.

    Attributes:
        title: title of the page.
        axis: the plot's horizontal axis.
        points: label, plot position and published figure of each configuration.
        recipes: the recipe of each point.
        configs: the configurations, in the order of `points`.
        references: labels of the points that all others are compared with; the first point if empty.
        shown: the set to compare with published figures; None for the mean of all sets.
    """

    title: str
    axis: str
    points: tuple[SweepSystem, ...]
    recipes: tuple[str, ...]
    configs: tuple[PipelineConfig, ...]
    references: tuple[str, ...]
    shown: str | None


def grid(name: str, over: Mapping[str, Sequence[Any]], changes: Mapping[str, Any], against: Sequence[str] = ()) -> Grid:
    """Return all combinations of the axes' values; a recipe without training is one point for all training values.

    Training does not stop at a collapse and never falls back to its start, unless `changes` or an axis sets so.

    Args:
        name: a declared study, or a recipe.
        over: field → values; overrides a study's axes.
        changes: other changes to every point.
        against: labels of the points that all others are compared with; overrides a study's references.

    Raises:
        ValueError: unknown study, recipe, field or label; an axis without values or with a repeated one; a point
            that fits a transform on each set, or has its own seed.
    """
    declared = _declared(name, over)
    axes = {field: tuple(values) for field, values in (over or declared.over).items()}
    for field, values in axes.items():
        if not values or len(set(map(str, values))) < len(values):
            raise ValueError(f"{field}: found values {list(values)}, expected one or more, each once")
    if apart := [name for name in axes.get(RECIPE, ()) if name in STUDIES and name not in RECIPES]:
        raise ValueError(f"{apart[0]} is a study, which says itself what is run; name it alone")
    combinations = _combinations(declared, axes)
    configs = [_configured(declared, values, changes).runs(1)[0] for values in combinations]
    points = [_point(declared, values, list(axes)[-1], own=not over) for values in combinations]
    labels = [point.label for point in points]
    if unknown := [label for label in against if label not in labels]:
        raise ValueError(f"against {', '.join(unknown)}: no such point; there are {', '.join(labels)}")
    return Grid(
        declared.title,
        list(axes)[-1],
        tuple(points),
        tuple(_recipe_of(declared, values) for values in combinations),
        tuple(configs),
        tuple(against) or (() if over else declared.references),
        None if over or declared.column == AVERAGE else declared.column,
    )


def _declared(name: str, over: Mapping[str, Sequence[Any]]) -> Study:
    if name in RECIPES and name not in STUDIES:
        if not over:
            raise ValueError(f"{name} is a recipe, of which nothing is to be varied; give --over FIELD=VALUE,VALUE")
        alone = list(over) == [RECIPE]
        return Study("Recipes side by side" if alone else f"{name} over {' and '.join(over)}", name, {})
    return study(name)


def _combinations(declared: Study, axes: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return field → value of each point; a recipe without training, one of several, has no training fields."""
    found: dict[str, dict[str, Any]] = {}
    for chosen in itertools.product(*axes.values()):
        values = dict(zip(axes, chosen, strict=True))
        if _is_beside_others(values) and recipe(_recipe_of(declared, values)).training is None:
            values = {field: value for field, value in values.items() if field.partition(".")[0] != _TRAINING}
        found.setdefault(str(values), values)
    return list(found.values())


def _is_beside_others(values: Mapping[str, Any]) -> bool:
    return any(name in values for name in _NAMES)


def _variant(declared: Study, values: Mapping[str, Any]) -> Mapping[str, Any]:
    name = values.get(VARIANT)
    if name is not None and name not in declared.variants:
        known = ", ".join(declared.variants) or "none"
        raise ValueError(f"{VARIANT} {name!r}: {declared.title} has {known}; name one of these, or vary a field")
    return declared.variants.get(str(name), {})


def _recipe_of(declared: Study, values: Mapping[str, Any]) -> str:
    return str(_variant(declared, values).get(RECIPE) or values.get(RECIPE, declared.recipe))


def _configured(declared: Study, values: Mapping[str, Any], changes: Mapping[str, Any]) -> PipelineConfig:
    config = _unstopped(recipe(_recipe_of(declared, values)))
    own = {name: to for name, to in _variant(declared, values).items() if name != RECIPE}
    for shared in (declared.changes, own, changes):
        # Among other recipes, one without training ignores changes to training.
        kept = config.training or not _is_beside_others(values)
        config = override(config, {name: to for name, to in shared.items() if name != _TRAINING or kept})
    # Set the objective before its fields, since each objective has other fields.
    for field in sorted(values, key=lambda field: field != "training.objective"):
        if field not in _NAMES:
            config = override(config, nested(field, values[field]))
    if config.transform is not None and config.transform_on == "targets":
        raise ValueError(
            f"{config.title}: a transform of its own for each set has no one system to compare over seeds; expected "
            "transform_on=corpus; leave this point out, or run the recipe by itself"
        )
    return config


def _unstopped(config: PipelineConfig) -> PipelineConfig:
    earlier = [override(phase, _as_it_ends(phase.training)) for phase in config.earlier]
    return override(config, {"earlier": earlier, **(_as_it_ends(config.training) if config.training else {})})


def _as_it_ends(training: TrainingConfig) -> dict[str, dict[str, Any]]:
    """Return changes that let a run end collapsed: the table shows its figure, not that of the start."""
    return {_TRAINING: {"collapse": None, **({"select": "best"} if training.select == "best-or-start" else {})}}


def _point(declared: Study, values: Mapping[str, Any], axis: str, *, own: bool) -> SweepSystem:
    names = {
        field: str(value) if field in _NAMES else f"{field.rpartition('.')[2]} {value}"
        for field, value in values.items()
    }
    published = declared.row(tuple(values.values())) if own and declared.row else None
    return SweepSystem(
        label=", ".join(names.values()),
        line=", ".join(name for field, name in names.items() if field != axis),
        place=str(values.get(axis, "untrained")),
        published=_figure(published, declared) if published else None,
    )


def _figure(name: str, declared: Study) -> float | None:
    """Return a row's published figure; over all pairs (protocol `all`) if several protocols are printed."""
    rows = [row for row in rows_of(name) if row.suite == declared.suite and declared.column in row.values]
    rows.sort(key=lambda row: row.protocol != "all")
    return rows[0].values[declared.column] if rows else None
