"""What decides a run: the stages' own configurations, side by side."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict, model_validator

from models.augmentation.config import AugmentConfig
from models.baselines.config import TransformConfig
from models.encoder.config import EncoderConfig
from models.evaluation.config import EvaluationConfig
from models.pairs import PairConfig
from models.training.config import TrainingConfig
from tasks.ingest import IngestConfig


class Phase(BaseModel):
    """One training: which pairs, and what is minimised on them."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    pairs: PairConfig
    """Which two views make a training pair."""
    training: TrainingConfig
    """The objective, its optimizer and schedule."""
    teacher: EncoderConfig | None = None
    """Whose vectors of the corpus the objective learns from, where it needs a teacher."""


class RunSettings(BaseModel):
    """Everything that decides the result of a run."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    ingest: IngestConfig
    """Which sentences."""
    augment: AugmentConfig
    """Which views of each sentence."""
    pairs: PairConfig
    """Which two views make a training pair."""
    encoder: EncoderConfig
    """Where online and target network start."""
    earlier: tuple[Phase, ...] = ()
    """Trainings before the last, each from what the one before it left."""
    teacher: EncoderConfig | None = None
    """Whose vectors of the corpus the objective learns from, where it needs a teacher."""
    training: TrainingConfig | None
    """The objective of the last training, its optimizer and schedule; None scores the encoder as it is."""
    evaluation: EvaluationConfig
    """Which sets the encoders are scored on."""
    transform: TransformConfig | None = None
    """A post-hoc transform, fitted on the corpus; what it makes of the encoders' vectors is scored beside them."""

    @property
    def phases(self) -> tuple[Phase, ...]:
        """All trainings, in order."""
        if self.training is None:
            return ()
        return (*self.earlier, Phase(pairs=self.pairs, training=self.training, teacher=self.teacher))

    @property
    def needs_labels(self) -> bool:
        """Whether views or pairs are made from labelled pairs."""
        phases = self.phases
        return bool(phases) and (self.augment.needs_labels or any(phase.pairs.labelled for phase in phases))

    @property
    def systems(self) -> tuple[str, ...]:
        """What tables call the encoder at the start and after each training."""
        if not self.phases:
            return (f"{self.encoder.short_name} ({self.encoder.pooling})",)
        labels = [phase.training.objective.label for phase in self.phases]
        trained = (f"after {', then '.join(labels[: number + 1])}" for number in range(len(labels)))
        return (f"before {labels[0]} ({self.encoder.pooling})", *trained)

    @model_validator(mode="after")
    def _ends_in_training(self) -> Self:
        if self.earlier and self.training is None:
            raise ValueError("earlier trainings without a last one; move the last of `earlier` to `training`")
        return self
