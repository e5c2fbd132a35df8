"""Settings of an evaluation, separate from its code so that commands can read them without Prefect."""

from __future__ import annotations

from typing import Final

from pydantic import Field, field_validator

from bsl.models.encoder.config import EncoderOverrides
from bsl.models.evaluation.config import ScoringConfig
from bsl.models.training.config import AFS_CONFIG, AFS_CROSS_CONFIG, STSB_CONFIG, STSB_CROSS_CONFIG, TrainingConfig

_PAIRS_HAVE: Final = frozenset({"score"})


class EvaluationSettings(ScoringConfig):
    """Settings of an evaluation."""

    reading: EncoderOverrides = EncoderOverrides()
    """Pooling and length of bare transformers."""
    stsb: TrainingConfig = STSB_CONFIG
    """Fine-tuning of an encoder on STS-B."""
    afs: TrainingConfig = AFS_CONFIG
    """Fine-tuning of an encoder on AFS."""
    stsb_cross: TrainingConfig = STSB_CROSS_CONFIG
    """Fine-tuning of a cross-encoder on STS-B."""
    afs_cross: TrainingConfig = AFS_CROSS_CONFIG
    """Fine-tuning of a cross-encoder on AFS."""
    seeds: int = Field(10, ge=2, le=1000)
    """Number of seeds of supervised STS-B; the scores are their mean and standard deviation."""

    @field_validator("stsb", "afs", "stsb_cross", "afs_cross")
    @classmethod
    def _learns_from_scores(cls, training: TrainingConfig) -> TrainingConfig:
        if training.objective.needs != _PAIRS_HAVE:
            raise ValueError(
                f"objective {training.objective.name} does not learn from scores, which are all that these pairs have. "
                "Choose regression or cross-regression."
            )
        if training.order == "groups":
            raise ValueError("order groups needs groups of pairs, and these pairs have none. Choose random or given.")
        return training
