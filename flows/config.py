"""Complete configuration of a run, composed of the stages' configurations; overrides, and their error messages."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, field_validator
from pydantic_core import core_schema

from models.evaluation.published import rows_of
from models.objectives.config import OBJECTIVE_CONFIGS, AnyObjective
from models.transforms.config import AnyTransform
from storage.filesystem.urls import shown
from tasks.settings import RunSettings

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema, ErrorDetails

    from models.runtime.precision import Precision


_FIRST_WORDS: Final = 4  # words of a field's description that are searched for a misspelt name


def explain(problem: ErrorDetails, base: BaseModel) -> str:
    """Return a validation error of pydantic as one readable line.

    Args:
        problem: The error.
        base: A valid configuration of the same type; the message suggests its fields.
    """
    # pydantic puts the name of the chosen objective between the section and its field.
    path = ".".join(str(part) for part in problem["loc"] if part not in OBJECTIVE_CONFIGS)
    if problem["type"] == "value_error" and not path:
        return str(problem["ctx"]["error"])  # a validator of the whole configuration; its message is complete
    model: object = base
    for part in problem["loc"][:-1]:
        model = OBJECTIVE_CONFIGS[str(part)]() if part in OBJECTIVE_CONFIGS else _section(model, str(part))
    fields = type(model).model_fields if isinstance(model, BaseModel) else {}
    if problem["type"] != "extra_forbidden":
        message = problem["msg"].removeprefix("Value error, ")
        if problem["type"] == "string_pattern_mismatch" and (field := fields.get(str(problem["loc"][-1]))):
            message = f"expected: {field.description}"
        return f"{path}: {message} (found {shown(repr(problem['input']))[:200]})"
    nearest = _nearest(str(problem["loc"][-1]), type(model)) if isinstance(model, BaseModel) else None
    hint = f". Did you mean {nearest!r}?" if nearest else "."
    listed = f" Fields: {', '.join(fields)}" if fields else ""
    return f"{path}: unknown field{hint}{listed}"


def _nearest(name: str, model: type[BaseModel]) -> str | None:
    """Return the field with the closest name, else a field whose description starts with a similar phrase.

    For example, "learning_rate" finds `lr`, described as "Peak learning rate".
    """
    fields = model.model_fields
    if nearest := difflib.get_close_matches(name, fields, n=1):
        return nearest[0]
    phrases: dict[str, str] = {}
    for field, info in fields.items():
        words = (info.description or "").lower().split()[:_FIRST_WORDS]
        for start, end in itertools.combinations(range(len(words) + 1), 2):
            phrases.setdefault("_".join(words[start:end]), field)
    nearest = difflib.get_close_matches(name, phrases, n=1, cutoff=0.8)
    return phrases[nearest[0]] if nearest else None


def _section(model: object, name: str) -> object:
    """Return the section `name` of a configuration; an unset section gives an empty instance of its type."""
    found = getattr(model, name, model)
    if found is not None or not isinstance(model, BaseModel):
        return found
    kinds = get_args(type(model).model_fields[name].annotation)
    sections = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
    return sections[0].model_construct() if len(sections) == 1 else None


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


def partial(model: type[BaseModel], first: Sequence[str] = ()) -> type[BaseModel]:
    """Return a pydantic model with every field optional, also the nested ones: the fields that a user may override.

    In Prefect, a nested parameter of a run replaces the deployment's parameter completely. Optional fields that
    `override` merges leave the recipe's other fields unchanged.

    Args:
        model: The model to copy.
        first: Fields that Prefect's run form shows first.
    """
    named = model.model_fields.get("name")
    chosen = str(named.default) if named is not None and get_origin(named.annotation) is Literal else None
    fields: dict[str, Any] = {}
    for name in dict.fromkeys((*first, *model.model_fields)):
        field = model.model_fields[name]
        default = chosen if name == "name" else None  # choosing an objective in the form sends its name
        fields[name] = (_overridable(field.annotation) | None, Field(default, description=field.description))
    return create_model(
        f"{model.__name__}Overrides",
        __config__=ConfigDict(frozen=True, extra="forbid", title=chosen or "Change"),  # the label of its button
        __doc__=model.__doc__,
        **fields,
    )


def _overridable(kind: Any) -> Any:  # noqa: ANN401 - an annotation: a type, a union or another form
    union = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    if union in (AnyObjective, AnyTransform):
        # Only a name chooses an objective or a transform; only fields change the one in the recipe.
        members = get_args(union)
        names = tuple(member.model_fields["name"].default for member in members)
        return Literal[names] | Union[tuple(map(partial, members))]  # noqa: UP007
    if type(None) in get_args(kind):
        return Union[tuple(_overridable(member) for member in get_args(kind))]  # noqa: UP007
    return partial(kind) if isinstance(kind, type) and issubclass(kind, BaseModel) else kind


@dataclass(frozen=True)
class Form:
    """Annotation that shows every field of a model as optional in Prefect's run form, and drops unchanged fields.

    The form sends all fields of the model, null where nothing was entered. In any other mapping null is a value, as in
    `--set training.collapse=null`.
    """

    model: type[BaseModel]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:  # noqa: ANN401
        return core_schema.no_info_before_validator_function(self._changes, handler(source))

    def __get_pydantic_json_schema__(self, _: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(self.model.__pydantic_core_schema__)

    def _changes(self, given: object) -> object:
        sent = isinstance(given, Mapping) and given.keys() >= self.model.model_fields.keys()
        return _without_nulls(given) if sent else given


def _without_nulls(section: Any) -> Any:  # noqa: ANN401 - a section or a value
    """Return a section without nulls and without inner sections of nulls only."""
    if not isinstance(section, Mapping):
        return section
    inner = {name: _without_nulls(value) for name, value in section.items()}
    return {name: value for name, value in inner.items() if value is not None and value != {}}


def form_of(model: type[BaseModel], first: Sequence[str] = ()) -> Any:  # noqa: ANN401 - a type for annotations
    """Return the type of a flow parameter that changes a configuration: a mapping in the form `override` takes.

    Args:
        model: The configuration.
        first: Fields that Prefect's run form shows first.
    """
    return Annotated[dict[str, Any], Form(partial(model, first))]


if TYPE_CHECKING:
    Overrides = dict[str, Any]
else:
    Overrides = form_of(
        PipelineConfig, first=("ingest", "encoder", "training", "augment", "pairs", "evaluation", "transform")
    )


def override(config: C, *changes: Mapping[str, Any]) -> C:
    """Return a validated configuration with changes. Configurations are merged only here.

    Args:
        config: A recipe, or other settings.
        changes: Nested fields; later mappings win.

    Raises:
        ValueError: A field is unknown (the message suggests the closest name), has the wrong type or is out of bounds;
            or the recipe does not train and `changes` sets training fields without an objective.
    """
    fields = config.model_dump()
    for layer in changes:
        if isinstance(config, PipelineConfig) and fields["training"] is None:
            _check_trains(config.title.partition(":")[0], layer.get("training"))
        fields = _merged(fields, layer)
    try:
        return type(config).model_validate(fields)
    except ValidationError as error:
        raise ValueError("\n".join(explain(problem, config) for problem in error.errors())) from error


def difference(base: BaseModel, target: BaseModel) -> dict[str, Any]:
    """Return the changes with which `override` turns `base` into `target`, as JSON values."""
    return _difference(base.model_dump(mode="json"), target.model_dump(mode="json"))


def nested(path: str, value: object) -> dict[str, Any]:
    """Return the change of one field as a nested mapping, such as `{"training": {"lr": 0.1}}` for `training.lr`."""
    *sections, last = path.split(".")
    changes: dict[str, Any] = {last: value}
    for section in reversed(sections):
        changes = {section: changes}
    return changes


def _check_trains(recipe: str, training: object) -> None:
    if isinstance(training, Mapping) and "objective" not in training:
        fields = ", ".join(f"training.{name}" for name in training) or "training"
        raise ValueError(
            f"{fields}: recipe {recipe} does not train. Set training.objective as well, or use a recipe that trains"
        )


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Merge changes into settings, section by section."""
    merged = dict(base)
    if changes.get("model", base.get("model")) != base.get("model") and "revision" in base:
        merged["revision"] = None  # the pinned commit belongs to the replaced model
    for name, value in changes.items():
        inner = merged.get(name)
        if isinstance(value, str) and isinstance(inner, Mapping) and "name" in inner:
            value = {"name": value}  # only a name; the fields stay if the name is unchanged
        are_sections = isinstance(value, Mapping) and isinstance(inner, Mapping)
        merged[name] = _merged(_same_kind(inner, value), value) if are_sections else value
    return merged


def _same_kind(inner: Any, value: Mapping[str, Any]) -> Mapping[str, Any]:  # noqa: ANN401 - a mapping by the caller
    """Return the section to change; empty if the changes choose another objective, which has other fields."""
    return {} if value.get("name", inner.get("name")) != inner.get("name") else inner


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
