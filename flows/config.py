"""Complete configuration of a run, composed of the stages' configurations, and overrides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, Field, ValidationError, field_validator
from pydantic_core import to_jsonable_python

from bsl.flows.parameters import check_texts
from bsl.flows.setting_errors import explained
from bsl.models.encoder.config import EncoderConfig
from bsl.models.evaluation.published import rows_of
from bsl.tasks.settings import RunSettings

if TYPE_CHECKING:
    from bsl.models.runtime.precision import Precision


C = TypeVar("C", bound=BaseModel)


class PipelineConfig(RunSettings):
    """Configuration of a run. A recipe is a function that returns a configuration."""

    title: str = Field(min_length=1)
    """First line of the report."""
    published: tuple[str, ...] = ()
    """Systems whose published figures the report prints next to the run's; names as in
    models/evaluation/published.csv."""

    @field_validator("published")
    @classmethod
    def _are_published(cls, systems: tuple[str, ...]) -> tuple[str, ...]:
        for system in systems:
            rows_of(system)  # a misspelt name fails now, not hours later in the report
        return systems

    def seeded(self, seed: int) -> PipelineConfig:
        """Return the run with another seed in every training phase, and in a transform that uses a seed."""
        changes: dict[str, Any] = {"training": {"seed": seed}} if self.training else {}
        if self.transform and "seed" in type(self.transform).model_fields:
            changes["transform"] = {"seed": seed}
        earlier = [override(phase, {"training": {"seed": seed}}) for phase in self.earlier]
        return override(self, {"earlier": earlier, **changes})

    def runs(self, seeds: int) -> list[PipelineConfig]:
        """Return the run with seeds 0, 1, …; a single run if no part of it uses a seed.

        Raises:
            ValueError: The configuration sets a seed, which would be overwritten.
        """
        if self != self.seeded(0):
            raise ValueError(
                "training.seed or transform.seed: set to a value, but the runs use the seeds 0, 1, …. Remove the "
                "setting; --seeds sets the number of runs"
            )
        is_seeded = self.seeded(0) != self.seeded(1)
        return [self.seeded(seed) for seed in range(seeds if is_seeded else 1)]

    @property
    def precisions(self) -> dict[str, Precision]:
        """Precisions of the last training phase and of the evaluation."""
        trained: dict[str, Precision] = {"training": self.training.precision} if self.training else {}
        return trained | {"evaluation": self.evaluation.precision}

    @property
    def settings(self) -> RunSettings:
        """The settings that decide the result: all fields except the report's title and its published rows."""
        return RunSettings.model_construct(**{name: getattr(self, name) for name in RunSettings.model_fields})

    def models(self) -> list[tuple[str, str | None]]:
        """Return the pretrained models of a run: folder, `embedded:` name or Hub id, and revision."""
        translators = [(hop.model, hop.revision) for view in self.augment.translations for hop in view.hops]
        rewriters = [model for view in self.augment.rewritings for model in view.models]
        teachers = (teacher for phase in self.phases for teacher in phase.teachers)
        encoders = [(config.model, config.revision) for config in (self.encoder, *teachers)]
        return [*encoders, *translators, *rewriters]


def override(config: C, *changes: Mapping[str, Any]) -> C:
    """Return a validated configuration with nested changes; later ones win. Configurations are merged only here.

    Raises:
        ValueError: A field is unknown (the message suggests the closest name), has the wrong type or is out of bounds;
            or the recipe does not train and `changes` sets training fields without an objective.
    """
    fields = _fields(config)
    for layer in changes:
        check_texts(layer)
        if isinstance(config, PipelineConfig) and fields["training"] is None:
            _check_trains(config.title.partition(":")[0], layer.get("training"))
        fields = _merged(fields, layer)
    try:
        return type(config).model_validate(fields)
    except ValidationError as error:
        raise ValueError(explained(error, config, fields)) from error


def difference(base: BaseModel, target: BaseModel) -> dict[str, Any]:
    """Return the changes with which `override` turns `base` into `target`, as JSON values."""
    first, second = (to_jsonable_python(_fields(config)) for config in (base, target))
    return _difference(first, second)


def nested(path: str, value: object) -> dict[str, Any]:
    """Return the change of one field as a nested mapping, such as `{"training": {"lr": 0.1}}` for `training.lr`."""
    *sections, last = path.split(".")
    changes: dict[str, Any] = {last: value}
    for section in reversed(sections):
        changes = {section: changes}
    return changes


def _check_trains(recipe: str, training: object) -> None:
    objective = training.get("objective") if isinstance(training, Mapping) else None
    is_named = isinstance(objective, str) or (isinstance(objective, Mapping) and "name" in objective)
    if isinstance(training, Mapping) and not is_named:
        fields = ", ".join(f"training.{name}" for name in training) or "training"
        raise ValueError(
            f"{fields}: recipe {recipe} does not train. Set training.objective as well, or use a recipe that trains"
        )


def _fields(value: Any) -> Any:  # noqa: ANN401 - a configuration, or a value in one
    """Return settings as mappings; of encoders only the given fields, so that a folder can provide the others."""
    if isinstance(value, BaseModel):
        kept = value.model_fields_set if isinstance(value, EncoderConfig) else type(value).model_fields
        return {name: _fields(inner) for name, inner in value if name in kept}
    if isinstance(value, Mapping):
        return {name: _fields(inner) for name, inner in value.items()}
    return tuple(map(_fields, value)) if isinstance(value, tuple) else value


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Merge changes into settings, section by section."""
    merged = _without_replaced(base, changes)
    for name, value in changes.items():
        inner = merged.get(name)
        if isinstance(value, Mapping) and isinstance(inner, tuple):
            merged[name] = _with_items(name, inner, value)
        else:
            merged[name] = _changed(inner, value)
    return merged


def _without_replaced(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings without the fields that describe the model, dataset or file that the changes replace."""
    if "revision" not in base:
        return dict(base)
    replaced = [name for name in ("model", "dataset", "path") if changes.get(name, base.get(name)) != base.get(name)]
    was, becomes = (next((name for name in ("path", "dataset") if each.get(name)), None) for each in (base, changes))
    if replaced and was and becomes and was != becomes:  # a file in the place of a dataset, or the reverse
        return {"limit": base["limit"]}
    pinned = {name: None for name in ("revision", "hub_config") if replaced and name in base}
    return {**base, **pinned}


def _changed(inner: Any, value: Any) -> Any:  # noqa: ANN401 - a value of any setting
    """Return the new value of a setting; of a section, what is not changed stays, unless it becomes another kind."""
    if not isinstance(inner, Mapping):
        return value
    if isinstance(value, str) and "name" in inner:
        value = {"name": value}  # only a name; the fields stay if the name is unchanged
    if not isinstance(value, Mapping):
        return value
    is_other = "name" in inner and value.get("name", inner["name"]) != inner["name"]
    return _merged({} if is_other else inner, value)  # another objective has other fields


def _with_items(name: str, items: tuple[Any, ...], changes: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the list `name` with changed items; the changes are by the items' numbers, as in `sources.0.limit`."""
    changed = list(items)
    for number, value in changes.items():
        if not number.isdecimal() or int(number) >= len(items):
            raise ValueError(f"{name}.{number}: expected the number of an item, below {len(items)}, or a complete list")
        changed[int(number)] = _changed(changed[int(number)], value)
    return tuple(changed)


def _difference(base: Mapping[str, Any], target: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that differ; sections of the same kind are compared field by field."""
    changes: dict[str, Any] = {}
    for name, value in target.items():
        before = base.get(name)
        if isinstance(value, dict) and isinstance(before, dict) and value.get("name") == before.get("name"):
            if inner := _difference(before, value):
                changes[name] = inner
        elif value != before:
            changes[name] = value
    return changes
