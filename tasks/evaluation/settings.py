"""How the encoders that a person names are evaluated."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from models.encoder.config import CNNConfig, Joined, Pooling, WordsConfig
from models.evaluation.config import ScoringConfig
from models.training.config import TrainingConfig, afs_config, afs_cross_config, stsb_config, stsb_cross_config


class Reading(BaseModel):
    """How a bare transformer is read; what a sentence-transformers folder says of itself stands unless given here."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    pooling: Pooling | Joined | None = None
    """`mean` unless given or said by the folder."""
    max_length: int | None = None
    """Tokens kept of a sentence; 64 unless given or said by the folder."""
    revision: str | None = None
    """Commit of a Hub model."""
    words: WordsConfig = WordsConfig()
    """How sentences are cut where a model is a file of word vectors."""
    cnn: CNNConfig | None = None
    """Convolutions that fine-tuning puts above a transformer without any, such as IS-BERT's; vectors that are taken as
    they are do without."""
    prompt: str | None = None
    """Put before every text, by the name that the folder has for it or as text; the folder's default unless given."""


class EvaluationSettings(ScoringConfig):
    """How encoders are evaluated."""

    reading: Reading = Reading()
    """Pooling and length of bare transformers."""
    stsb: TrainingConfig = Field(default_factory=stsb_config)
    """How an encoder is fine-tuned on STS-B."""
    afs: TrainingConfig = Field(default_factory=afs_config)
    """How an encoder is fine-tuned on AFS."""
    stsb_cross: TrainingConfig = Field(default_factory=stsb_cross_config)
    """How a cross-encoder is fine-tuned on STS-B."""
    afs_cross: TrainingConfig = Field(default_factory=afs_cross_config)
    """How a cross-encoder is fine-tuned on AFS."""
    seeds: int = Field(10, ge=2)
    """Runs of supervised STS-B, whose mean and standard deviation are given."""
