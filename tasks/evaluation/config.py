"""Settings of an evaluation, separate from its code so that commands can read them without Prefect."""

from __future__ import annotations

from pydantic import Field

from bsl.models.encoder.config import LONGEST, CNNConfig, WordsConfig
from bsl.models.encoder.pooling import POOLINGS, PoolingName
from bsl.models.evaluation.config import ScoringConfig
from bsl.models.training.config import AFS_CONFIG, AFS_CROSS_CONFIG, STSB_CONFIG, STSB_CROSS_CONFIG, TrainingConfig
from bsl.storage.record import Record


class EncoderOverrides(Record):
    """Encoder settings by the user; they override a sentence-transformers folder and complete a bare transformer."""

    pooling: PoolingName | None = Field(
        None,
        description=f"Pooling of token vectors: {', '.join(POOLINGS)}, or several, such as cls+mean, which are "
        "concatenated; by default the folder's, or mean for a bare transformer.",
    )
    max_length: int | None = Field(None, ge=4, le=LONGEST)
    """Maximum tokens of a sentence; by default the folder's, or 64 for a bare transformer."""
    revision: str | None = None
    """Commit of a Hub model."""
    words: WordsConfig = WordsConfig()
    """Word tokenization for a file of word vectors."""
    cnn: CNNConfig | None = None
    """Convolutions that fine-tuning adds to a transformer without any, such as IS-BERT's; frozen evaluations do not use
    them."""
    prompt: str | None = None
    """Prefix of every text: the name of a prompt in the folder, or a text, '' for none; by default the folder's."""


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
