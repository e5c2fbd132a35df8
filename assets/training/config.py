"""Settings for making the embedded models: shape, vocabulary, optimizer, schedule, budget, data."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from assets.training.masked_lm import EncoderShape
from assets.training.translation import TranslationModelConfig
from bsl.models.objectives.distillation_config import DistilConfig
from bsl.models.runtime.precision import Precision
from bsl.models.training.config import TrainingConfig
from bsl.storage.record import Record


class LearningConfig(Record):
    """Optimizer, schedule and budget of one pre-training run."""

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
    """Seed of initial weights, order of examples and masks."""
    precision: Precision = "auto"
    """Arithmetic of matrix products; weights stay fp32. `auto`: bf16 where the device is faster in it, else
    fp32."""


class EncoderRecipe(Record):
    """A masked LM."""

    learning: LearningConfig = LearningConfig(steps=6000, warmup_steps=100, seed=1)
    """Optimizer and budget."""
    multilingual: bool = False
    """Whether it learns all languages of the translators, with their accents; False is English only."""
    vocabulary: int = Field(default=8192, ge=64)
    """WordPiece entries."""
    held_out: int = Field(default=3000, ge=1)
    """Number of held-out sentences for evaluation."""
    model: EncoderShape = EncoderShape()
    """Shape and batches."""


class TranslatorRecipe(Record):
    """A translator between English and other languages."""

    learning: LearningConfig = LearningConfig(steps=8000, seed=1)
    """Optimizer and budget."""
    shares: dict[str, float] = Field({"de": 1.0, "fr": 1.0, "es": 0.3, "tr": 0.25, "ar": 1.0})
    """Share of each language's pairs drawn in an epoch; other languages are not used."""
    near: float = Field(default=1.0, ge=0)
    """Factor on the share of the pairs most similar to captions, which are 30 % of each language."""
    into_english: bool = False
    """Direction: False is English into the languages."""
    back_translated: float = Field(default=0.0, ge=0)
    """Share of the back-translated pairs drawn in an epoch."""
    vocabulary: int = Field(default=8000, ge=64)
    """Entries of the joint vocabulary."""
    held_out: int = Field(default=2000, ge=1)
    """Number of held-out pairs of each language for evaluation."""
    model: TranslationModelConfig = TranslationModelConfig()
    """Shape and batches."""


class LessonsRecipe(Record):
    """The sentences whose vectors the small sentence encoders learn from a large one."""

    sentences: int = Field(default=380_000, ge=1)
    """Largest number of sentences."""
    most_words: int = Field(default=36, ge=4)
    """Largest number of words in a sentence; training on short sentences gains more per second."""
    seed: int = Field(default=0, ge=0)
    """Seed of the choice of sentences."""


_LEARNING = TrainingConfig(
    objective=DistilConfig(vectors_weight=5.0, distance="cosine", views="first"),
    lr=1e-3,
    batch_size=128,
    epochs=2,
    length_buckets=16,
    select="last",
)


class StudentRecipe(Record):
    """A sentence encoder, initialised from the masked LM, that learns the vectors of a larger one."""

    max_length: int = Field(default=128, ge=4)
    """Maximal number of tokens per sentence; longer ones are truncated."""
    training: TrainingConfig = _LEARNING
    """Settings of the training."""


class TableRecipe(Record):
    """A static table, fitted to the vectors of a larger encoder and then trained on them."""

    vocabulary: int = Field(default=16_384, ge=64)
    """WordPiece entries."""
    dimensions: int = Field(default=256, ge=1)
    """Principal axes of the teacher's vectors that are kept."""
    training: TrainingConfig = _LEARNING.model_copy(update={"epochs": 3})
    """Settings of the training."""
