"""How each embedded model is made: shape, vocabulary, learning, data."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from models.encoder.config import EncoderConfig
from models.objectives.config import DistilConfig
from models.pretraining.config import LearningConfig
from models.pretraining.masked_lm import MaskedLMConfig
from models.pretraining.translation import TranslationModelConfig
from models.training.config import TrainingConfig


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
    model: MaskedLMConfig = MaskedLMConfig()
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
