"""What decides a run: the stages' own configurations, side by side."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from models.augmentation.config import AugmentConfig
from models.baselines.config import TransformConfig
from models.encoder.config import EncoderConfig
from models.evaluation.config import EvaluationConfig
from models.pairs import PairConfig
from models.training.config import TrainingConfig
from tasks.ingest import IngestConfig


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
    teacher: EncoderConfig | None = None
    """Whose vectors of the corpus the objective learns from, where it needs a teacher."""
    training: TrainingConfig
    """The objective, its optimizer and schedule."""
    evaluation: EvaluationConfig
    """Which sets the encoders are scored on."""
    transform: TransformConfig | None = None
    """A post-hoc transform, fitted on the corpus; what it makes of the encoders' vectors is scored beside them."""

    @property
    def needs_labels(self) -> bool:
        """Whether views or pairs are made from labelled pairs."""
        return self.augment.needs_labels or self.pairs.labelled
