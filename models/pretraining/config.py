"""How each embedded model is made: shape, vocabulary, optimizer, schedule, budget, data."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from models.encoder.config import EncoderConfig
from models.objectives.config import DistilConfig
from models.pretraining.masked_lm import EncoderShape
from models.pretraining.translation import TranslationModelConfig
from models.runtime.precision import Precision
from models.training.config import TrainingConfig


class LearningConfig(BaseModel):
    """Optimizer, schedule and budget of one pre-training run."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    optimizer: Literal["adamw", "muon"] = "muon"
    """AdamW for everything, or Muon (orthogonalised momentum) for hidden matrices and AdamW for the rest."""
    peak_lr: float = Field(default=2e-3, gt=0)
    """Learning rate after warm-up; Muon's is matched to AdamW's by update size (arXiv 2502.16982)."""
    beta2: float = Field(default=0.98, gt=0, lt=1)
    """AdamW's second-moment decay."""
    weight_decay: float = Field(default=0.01, ge=0)
    """Decoupled decay of matrices; embeddings, norms and biases are not decayed."""
    warmup_steps: int = Field(default=200, ge=0)
    """Optimizer steps of linear warm-up."""
    clip_norm: float = Field(default=1.0, gt=0)
    """Largest global gradient norm."""
    steps: int = Field(default=1000, ge=1)
    """Step budget, over which the rate falls linearly to zero; reproducible."""
    minutes: float | None = Field(default=None, gt=0)
    """Wall-clock budget instead of `steps`: the rate falls with elapsed time. Not reproducible."""
    seed: int = Field(default=0, ge=0)
    """Decides initial weights, order of examples and masks."""
    precision: Precision = "auto"
    """Arithmetic of matrix products; weights stay fp32. `auto`: bf16 where the device computes in it natively, else
    fp32."""


class _Recipe(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    learning: LearningConfig = LearningConfig()
    """Optimizer and budget."""


class EncoderRecipe(_Recipe):
    """A masked LM."""

    multilingual: bool = False
    """Reads all languages of the translators, with their accents; False is English alone."""
    vocabulary: int = Field(default=8192, ge=64)
    """WordPiece entries."""
    held_out: int = Field(default=3000, ge=1)
    """Sentences that are kept for evaluation."""
    model: EncoderShape = EncoderShape()
    """Shape and batches."""
    learning: LearningConfig = LearningConfig(steps=6000, warmup_steps=100, seed=1)


class TranslatorRecipe(_Recipe):
    """A translator between English and other languages."""

    shares: dict[str, float] = {"de": 1.0, "fr": 1.0, "es": 0.3, "tr": 0.25, "ar": 1.0}
    """Share of each language's pairs drawn in an epoch; languages left out are not learnt."""
    near: float = Field(default=1.0, ge=0)
    """How many times as often the pairs are drawn that are most like captions, three in ten of each language."""
    into_english: bool = False
    """Direction: False is English into the languages."""
    back_translated: float = Field(default=0.0, ge=0)
    """Share of the back-translated pairs drawn in an epoch."""
    vocabulary: int = Field(default=8000, ge=64)
    """Entries of the joint vocabulary."""
    held_out: int = Field(default=2000, ge=1)
    """Pairs of each language that are kept for evaluation."""
    model: TranslationModelConfig = TranslationModelConfig()
    """Shape and batches."""
    learning: LearningConfig = LearningConfig(steps=8000, seed=1)


class StudentRecipe(BaseModel):
    """A sentence encoder that learns a larger one's vectors, from the masked LM."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    teacher: EncoderConfig = EncoderConfig(
        model="sentence-transformers/all-MiniLM-L6-v2", normalize=True, max_length=128
    )
    """Whose vectors are learnt."""
    sentences: int = Field(default=380_000, ge=1)
    """Most sentences that it reads."""
    most_words: int = Field(default=36, ge=4)
    """Longer sentences are left out: short ones teach more a second."""
    max_length: int = Field(default=128, ge=4)
    """Tokens kept of a sentence."""
    training: TrainingConfig = TrainingConfig(
        objective=DistilConfig(vectors_weight=5.0, distance="cosine", views="first"),
        lr=1e-3,
        batch_size=128,
        epochs=2,
        length_buckets=16,
        select="last",
    )
    """How."""
