"""The complete, frozen configuration of a run: the stages' own configurations, composed."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Union, get_args

from pydantic import BaseModel, ConfigDict, Field, create_model

from models.augmentation.config import AugmentConfig
from models.baselines.config import TransformConfig
from models.encoder.config import EncoderConfig
from models.evaluation.config import EvaluationConfig
from models.objectives.config import OBJECTIVE_CONFIGS, AnyObjective
from models.pairs import PairConfig
from models.training.config import TrainingConfig
from tasks.ingest import IngestConfig


class PipelineConfig(BaseModel):
    """Everything that decides the result of a run. A recipe is a function that returns one."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    title: str = Field(min_length=1)
    """First line of the report."""
    ingest: IngestConfig
    """Which sentences."""
    augment: AugmentConfig
    """Which views of each sentence."""
    pairs: PairConfig
    """Which two views make a training pair."""
    encoder: EncoderConfig
    """Where online and target network start."""
    training: TrainingConfig
    """The BSL objective, its optimizer and schedule."""
    evaluation: EvaluationConfig
    """Which sets the encoders are scored on."""
    transform: TransformConfig | None = None
    """A post-hoc transform, fitted on the corpus; what it makes of the encoders' vectors is scored beside them."""
    published: tuple[str, ...] = ()
    """Systems whose published figures the report prints beside the run's."""

    def models(self) -> list[tuple[str, str | None]]:
        """Every pretrained model of a run: its folder, `embedded:` name or Hub id, and its revision."""
        translators = [(hop.model, hop.revision) for view in self.augment.translations for hop in view.hops]
        refiller = [(self.augment.mlm.model, self.augment.mlm.revision)] if self.augment.mlm else []
        return [(self.encoder.model, self.encoder.revision), *translators, *refiller]


def partial(model: type[BaseModel]) -> type[BaseModel]:
    """The same model with every field optional, nested ones too: what a person may override.

    A run's nested parameter replaces a deployment's as a whole in Prefect; with all fields optional and merged by
    `override`, one changed field leaves the others as the recipe has them.
    """
    fields: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        kind = field.annotation
        fields[name] = (_overridable(kind) | None, Field(None, description=field.description))
    return create_model(
        f"{model.__name__}Overrides",
        __config__=ConfigDict(frozen=True, extra="forbid"),
        __doc__=model.__doc__,
        **fields,
    )


def _overridable(kind: Any) -> Any:  # noqa: ANN401 - an annotation: a type, a union or another form
    if kind == AnyObjective:
        # Its name alone chooses an objective; fields alone change the recipe's own.
        return Literal[tuple(OBJECTIVE_CONFIGS)] | Union[tuple(partial(each) for each in get_args(kind))]  # noqa: UP007
    return partial(kind) if isinstance(kind, type) and issubclass(kind, BaseModel) else kind


if TYPE_CHECKING:
    Overrides = BaseModel
else:
    Overrides = partial(PipelineConfig)


def override(config: PipelineConfig, changes: BaseModel | Mapping[str, Any]) -> PipelineConfig:
    """A recipe's configuration with a person's changes, checked as a whole.

    Raises:
        pydantic.ValidationError: a field is unknown, of another type or out of bounds.
    """
    given = changes.model_dump(exclude_unset=True) if isinstance(changes, BaseModel) else changes
    return PipelineConfig.model_validate(_merged(config.model_dump(), given))


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for name, value in changes.items():
        inner = merged.get(name)
        nested = isinstance(value, Mapping) and isinstance(inner, Mapping)
        merged[name] = _merged(_same_kind(inner, value), value) if nested else value
    return merged


def _same_kind(inner: Any, value: Mapping[str, Any]) -> Mapping[str, Any]:  # noqa: ANN401 - a mapping by the caller
    """The section to change; empty if the changes name another objective, whose fields are others."""
    return {} if value.get("name", inner.get("name")) != inner.get("name") else inner
