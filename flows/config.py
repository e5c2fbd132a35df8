"""The complete, frozen configuration of a run: the stages' own configurations, composed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, create_model, field_validator

from models.baselines.config import AnyTransform
from models.evaluation.published import rows_of
from models.objectives.config import AnyObjective
from tasks.settings import RunSettings

if TYPE_CHECKING:
    from models.precision import Precision

C = TypeVar("C", bound=BaseModel)


class PipelineConfig(RunSettings):
    """A run with its name. A recipe is a function that returns one."""

    title: str = Field(min_length=1)
    """First line of the report."""
    published: tuple[str, ...] = ()
    """Systems whose published figures the report prints beside the run's, as models/evaluation/published.csv calls
    them."""

    @field_validator("published")
    @classmethod
    def _are_published(cls, systems: tuple[str, ...]) -> tuple[str, ...]:
        for system in systems:
            rows_of(system)  # raises before the first stage what the report would find hours later
        return systems

    def seeded(self, seed: int) -> PipelineConfig:
        """The same run with another seed in every phase, and of a transform that draws."""
        again: dict[str, Any] = {"training": {"seed": seed}} if self.training else {}
        if self.transform and "seed" in type(self.transform).model_fields:
            again["transform"] = {"seed": seed}
        earlier = [merged(phase.model_dump(), {"training": {"seed": seed}}) for phase in self.earlier]
        return override(self, {"earlier": earlier, **again})

    def runs(self, seeds: int) -> list[PipelineConfig]:
        """The run with seeds 0, 1, …; once where nothing of it draws, so that a seed makes no difference.

        Raises:
            ValueError: the run has a seed of its own, which would be lost.
        """
        if self != self.seeded(0):
            raise ValueError(
                "a seed (training.seed, transform.seed) is given, but each of several runs has its own, 0, 1, …; leave "
                "it out, and say with --seeds how many there are"
            )
        draws = self.seeded(0) != self.seeded(1)
        return [self.seeded(seed) for seed in range(seeds if draws else 1)]

    @property
    def precisions(self) -> dict[str, Precision]:
        """What the last training and the evaluation compute in."""
        trained: dict[str, Precision] = {"training": self.training.precision} if self.training else {}
        return trained | {"evaluation": self.evaluation.precision}

    @property
    def settings(self) -> RunSettings:
        """What decides the result, without what the report is called and held against."""
        return RunSettings.model_validate(self.model_dump(include=set(RunSettings.model_fields)))

    def models(self) -> list[tuple[str, str | None]]:
        """Every pretrained model of a run: its folder, `embedded:` name or Hub id, and its revision."""
        translators = [(hop.model, hop.revision) for view in self.augment.translations for hop in view.hops]
        rewriters = [model for view in self.augment.rewritings for model in view.models]
        teachers = (teacher for phase in self.phases for teacher in phase.teachers)
        encoders = [(config.model, config.revision) for config in (self.encoder, *teachers)]
        return [*encoders, *translators, *rewriters]


def partial(model: type[BaseModel], first: Sequence[str] = ()) -> type[BaseModel]:
    """The same model with every field optional, nested ones too: what a person may override.

    A run's nested parameter replaces a deployment's as a whole in Prefect; with all fields optional and merged by
    `override`, one changed field leaves the others as the recipe has them.

    Args:
        model: whose fields are made optional.
        first: the fields that Prefect's run form shows first.
    """
    fields: dict[str, Any] = {}
    for name in dict.fromkeys((*first, *model.model_fields)):
        field = model.model_fields[name]
        kind = field.annotation
        fields[name] = (_overridable(kind) | None, Field(None, description=field.description))
    return create_model(
        f"{model.__name__}Overrides",
        __config__=ConfigDict(frozen=True, extra="forbid"),
        __doc__=model.__doc__,
        **fields,
    )


def _overridable(kind: Any) -> Any:  # noqa: ANN401 - an annotation: a type, a union or another form
    union = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    if union in (AnyObjective, AnyTransform):
        # Its name alone chooses an objective or a transform; fields alone change the recipe's own.
        members = get_args(union)
        names = tuple(member.model_fields["name"].default for member in members)
        return Literal[names] | Union[tuple(map(partial, members))]  # noqa: UP007
    if type(None) in get_args(kind):
        return Union[tuple(_overridable(member) for member in get_args(kind))]  # noqa: UP007
    return partial(kind) if isinstance(kind, type) and issubclass(kind, BaseModel) else kind


if TYPE_CHECKING:
    Overrides = BaseModel
else:
    Overrides = partial(PipelineConfig, first=("ingest", "encoder", "training"))


def override(config: PipelineConfig, changes: BaseModel | Mapping[str, Any]) -> PipelineConfig:
    """A recipe's configuration with a person's changes, checked as a whole.

    Raises:
        ValueError: fields of a training are changed where nothing is trained, and no objective is named.
        pydantic.ValidationError: a field is unknown, of another type or out of bounds.
    """
    given = changes.model_dump(exclude_unset=True) if isinstance(changes, BaseModel) else changes
    training = given.get("training")
    if config.training is None and isinstance(training, Mapping) and "objective" not in training:
        fields = ", ".join(f"training.{name}" for name in training) or "training"
        raise ValueError(
            f"{fields}: {config.title.partition(':')[0]} trains nothing; name training.objective as well, or take a "
            "recipe that trains"
        )
    return overridden(config, given)


def overridden(config: C, changes: BaseModel | Mapping[str, Any]) -> C:
    """As `override`, of any configuration.

    Raises:
        pydantic.ValidationError: as `override`.
    """
    given = changes.model_dump(exclude_unset=True) if isinstance(changes, BaseModel) else changes
    return type(config).model_validate(merged(config.model_dump(), given))


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with changes, section by section."""
    both = dict(base)
    if changes.get("model", base.get("model")) != base.get("model") and "revision" in base:
        both["revision"] = None  # the pin is another model's
    for name, value in changes.items():
        inner = both.get(name)
        if isinstance(value, str) and isinstance(inner, Mapping) and "name" in inner:
            value = {"name": value}  # chooses an objective or a transform; the one that is there stays as it is
        deeper = isinstance(value, Mapping) and isinstance(inner, Mapping)
        both[name] = merged(_same_kind(inner, value), value) if deeper else value
    return both


def nested(path: str, value: object) -> dict[str, Any]:
    """The change of one field, such as `{"training": {"lr": 0.1}}` of `training.lr`."""
    *sections, last = path.split(".")
    changes: dict[str, Any] = {last: value}
    for section in reversed(sections):
        changes = {section: changes}
    return changes


def _same_kind(inner: Any, value: Mapping[str, Any]) -> Mapping[str, Any]:  # noqa: ANN401 - a mapping by the caller
    """The section to change; empty if the changes name another objective, whose fields are others."""
    return {} if value.get("name", inner.get("name")) != inner.get("name") else inner
