"""Expand a study, or a recipe and fields with several values, into one configuration per point."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from bsl.flows.config import PipelineConfig, nested, override
from bsl.flows.recipes import RECIPES, recipe
from bsl.flows.sweep.own import own_axes
from bsl.flows.sweep.studies import OWN, RECIPE, STUDIES, VARIANT, Study
from bsl.models.evaluation.published import AVERAGE, rows_of
from bsl.storage.filesystem.spelling import did_you_mean
from bsl.tasks.reporting.sweep.system import SweepSystem

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bsl.models.evaluation.published import PublishedRow
    from bsl.models.training.config import TrainingConfig

_NAMED: Final = (RECIPE, VARIANT)  # axes whose values are names, not values of a field
_TRAINING: Final = "training"
_UNSET: Final = object()


@dataclass(frozen=True)
class Grid:
    """Points and configurations of a sweep.

    All points are compared with the references, with the first point if there are none. The set `shown` is compared
    with published figures; None is the mean of all sets.
    """

    title: str
    axis: str
    points: tuple[SweepSystem, ...]
    recipes: tuple[str, ...]
    configs: tuple[PipelineConfig, ...]
    references: tuple[str, ...]
    shown: str | None


def grid(
    name: str,
    over: Mapping[str, Sequence[Any]],
    changes: Mapping[str, Any],
    against: Sequence[str] = (),
    study: Study | None = None,
) -> Grid:
    """Return all combinations of the axes' values; a recipe without training is one point for all training values.

    Training does not stop at a collapse and never returns the original encoder, unless `changes` or an axis sets this.

    `over` and `against` override the axes and references of a declared study; `changes` are those of every point.
    `study` is the study `own`, which is not in `STUDIES`.

    Raises:
        ValueError: Unknown study, recipe, field or label; an axis without values or with a repeated value, or of a
            field in `changes`; two points with the same settings; a point that fits a transform on each set, or sets
            a seed.
    """
    over = own_axes(over) if study else over
    declared = study or _declared(name, over)
    axes = {field: tuple(values) for field, values in (over or declared.over).items()}
    for field, values in axes.items():
        if not values or len(set(map(str, values))) < len(values):
            raise ValueError(f"{field}: expected one or more different values (found {list(values)})")
    refuse_varied(axes, changes)
    if studies := [name for name in axes.get(RECIPE, ()) if name in STUDIES and name not in RECIPES]:
        raise ValueError(f"{studies[0]} is a study, not a recipe. Run it alone: bsl sweep {studies[0]}")
    combinations = _combinations(declared, axes)
    configs = [_configured(declared, values, changes).runs(1)[0] for values in combinations]
    points = [_point(declared, values, list(axes)[-1], with_row=not over) for values in combinations]
    labels = [point.label for point in points]
    _refuse_equal(labels, configs)
    if unknown := [label for label in against if label not in labels]:
        hint = did_you_mean(unknown[0], labels)
        raise ValueError(f"against {'; '.join(unknown)}: unknown point.{hint} Points: {'; '.join(labels)}")
    return Grid(
        declared.title,
        list(axes)[-1],
        tuple(points),
        tuple(_recipe_of(declared, values) for values in combinations),
        tuple(configs),
        tuple(against) or (() if over else declared.references),
        None if over or declared.column == AVERAGE else declared.column,
    )


def refuse_varied(axes: Iterable[str], changes: Mapping[str, Any]) -> None:
    """Refuse changes of fields that are axes: the values of the axes would replace them."""
    for field in axes:
        found: Any = changes
        for name in field.split("."):
            found = found.get(name, _UNSET) if isinstance(found, Mapping) else _UNSET
        if found is not _UNSET:
            raise ValueError(
                f"{field}: the sweep varies the field, but --set, --precision or `overrides` sets it for all points. "
                "Remove that setting; --over chooses the values"
            )


def _refuse_equal(labels: Sequence[str], configs: Sequence[PipelineConfig]) -> None:
    """Refuse points that differ only in their titles and published rows: they would have the same figures."""
    seen: dict[str, str] = {}
    for label, config in zip(labels, configs, strict=True):
        settings = config.model_dump_json(exclude={"title", "published"})
        if (other := seen.setdefault(settings, label)) != label:
            raise ValueError(
                f"{other} and {label}: the points have the same settings, so their figures would be equal. Name other "
                "values with --over, or remove the setting (--set, --precision or `overrides`) that replaces those "
                "in which the points differ"
            )


def _declared(name: str, over: Mapping[str, Sequence[Any]]) -> Study:
    if name in STUDIES:
        return STUDIES[name]
    if name not in RECIPES:
        hint = did_you_mean(name, (*STUDIES, OWN, *RECIPES))
        raise ValueError(
            f"unknown study or recipe {name!r}.{hint} Studies: {', '.join((*STUDIES, OWN))}. `bsl recipes` lists the "
            "recipes"
        )
    if not over:
        raise ValueError(f"{name} is a recipe, not a study. Name the fields to vary: --over FIELD=VALUE,VALUE")
    only_recipes = list(over) == [RECIPE]
    return Study("Recipes side by side" if only_recipes else f"{name} over {' and '.join(over)}", name, {})


def _combinations(declared: Study, axes: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return field → value of each point; among several recipes, one without training has no training fields."""
    found: dict[str, dict[str, Any]] = {}
    for chosen in itertools.product(*axes.values()):
        values = dict(zip(axes, chosen, strict=True))
        if _is_one_of_several(values) and recipe(_recipe_of(declared, values)).training is None:
            values = {field: value for field, value in values.items() if field.partition(".")[0] != _TRAINING}
        found.setdefault(str(values), values)
    return list(found.values())


def _is_one_of_several(values: Mapping[str, Any]) -> bool:
    """Return whether the sweep has several recipes or variants."""
    return any(name in values for name in _NAMED)


def _variant(declared: Study, values: Mapping[str, Any]) -> Mapping[str, Any]:
    name = values.get(VARIANT)
    if name is not None and name not in declared.variants:
        hint, known = did_you_mean(str(name), declared.variants), "; ".join(declared.variants) or "none"
        raise ValueError(f"unknown variant {name!r} of study {declared.title!r}.{hint} Variants: {known}")
    return declared.variants.get(str(name), {})


def _recipe_of(declared: Study, values: Mapping[str, Any]) -> str:
    return str(_variant(declared, values).get(RECIPE) or values.get(RECIPE, declared.recipe))


def _configured(declared: Study, values: Mapping[str, Any], changes: Mapping[str, Any]) -> PipelineConfig:
    config = _unstopped(recipe(_recipe_of(declared, values)))
    of_variant = {name: value for name, value in _variant(declared, values).items() if name != RECIPE}
    for layer in (declared.changes, of_variant, changes):
        # Among several recipes, one without training ignores changes to training.
        trains = config.training or not _is_one_of_several(values)
        config = override(config, {name: value for name, value in layer.items() if name != _TRAINING or trains})
    # The objective is set before its fields, because each objective has other fields.
    for field in sorted(values, key=lambda field: field != "training.objective"):
        if field not in _NAMED:
            config = override(config, nested(field, values[field]))
    if config.transform is not None and config.transform_on == "targets":
        raise ValueError(
            f"{config.title}: transform_on=targets fits a transform on each set, so there is no single system to "
            "compare over seeds. Set transform_on=corpus, remove this point, or run the recipe with `bsl run`"
        )
    return config


def _unstopped(config: PipelineConfig) -> PipelineConfig:
    earlier = [override(phase, _without_stop(phase.training)) for phase in config.earlier]
    return override(config, {"earlier": earlier, **(_without_stop(config.training) if config.training else {})})


def _without_stop(training: TrainingConfig) -> dict[str, dict[str, Any]]:
    """Return changes for the table to show the figure of a collapsed run, not that of the original encoder."""
    return {_TRAINING: {"collapse": None, **({"select": "best"} if training.select == "best-or-start" else {})}}


def _point(declared: Study, values: Mapping[str, Any], axis: str, *, with_row: bool) -> SweepSystem:
    names = {
        field: str(value) if field in _NAMED else f"{field.rpartition('.')[2]} {value}"
        for field, value in values.items()
    }
    name = declared.row(tuple(values.values())) if with_row and declared.row else None
    published = _published(name, declared) if name else None
    return SweepSystem(
        label=", ".join(names.values()),
        line=", ".join(name for field, name in names.items() if field != axis),
        place=str(values.get(axis, "untrained")),
        published=published.values[declared.column] if published else None,
        published_as=_other_figure(published, declared) if published else "",
    )


def _published(name: str, declared: Study) -> PublishedRow | None:
    """Return the published row with a system's figure; protocol `all` if several protocols are published."""
    rows = [row for row in rows_of(name) if row.suite == declared.suite and declared.column in row.values]
    rows.sort(key=lambda row: row.protocol != "all")
    return rows[0] if rows else None


def _other_figure(row: PublishedRow, declared: Study) -> str:
    """Return what a published figure is; empty if it is of protocol `all`, as the figures of a sweep."""
    if row.protocol == "all":
        return ""
    what = "mean" if declared.column == AVERAGE else declared.column
    return f"{what} of {row.suite}, {row.protocol}"
