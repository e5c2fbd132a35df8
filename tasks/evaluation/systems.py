"""Systems to evaluate: encoders, found by name, and vectors of any origin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pydantic import Field

from models.encoder.config import DEFAULT_LENGTH, CNNConfig, EncoderConfig, Joined, Pooling, WordsConfig
from models.evaluation.config import ScoringConfig
from models.training.config import AFS_CONFIG, AFS_CROSS_CONFIG, STSB_CONFIG, STSB_CROSS_CONFIG, TrainingConfig
from storage.artifacts.refs import CheckpointRef, EmbeddingsRef
from storage.record import Record
from storage.sources.model_sources import ResolvedModel
from storage.sources.word_vectors import is_vectors_file
from tasks.embedding.encoders import described_folder, find_encoder, identity_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from models.runtime.precision import Precision
    from tasks.corpus.evaluation_sets import EvaluationSet
    from tasks.stage.run_context import RunContext


class NamedEncoder(Record):
    """An encoder with its name in tables and its settings."""

    label: str
    """Name in tables."""
    encoder: CheckpointRef | ResolvedModel
    config: EncoderConfig

    @property
    def checkpoint(self) -> str:
        """Key of the checkpoint, or the identity of another encoder."""
        return self.encoder.key if isinstance(self.encoder, CheckpointRef) else self.encoder.identity


@dataclass(frozen=True)
class System:
    """A system to score: vectors of the sets' sentences, with name and origin.

    Attributes:
        label: Name in tables.
        checkpoint: Identity of its encoder; empty for a system without one.
        embeddings: Its vectors.
        datasets: Datasets that the vectors cover; None for all. A transform fitted on each dataset gives a `System` for
            each of them, all with the same label.
        folded: Encoder that includes the transform and computes the same vectors, if one exists.
    """

    label: str
    checkpoint: str
    embeddings: EmbeddingsRef
    datasets: frozenset[str] | None = None
    folded: CheckpointRef | None = None

    def of(self, sets: tuple[EvaluationSet, ...]) -> tuple[EvaluationSet, ...]:
        """Return the sets that the vectors cover."""
        return tuple(
            evaluation_set
            for evaluation_set in sets
            if self.datasets is None or evaluation_set.dataset in self.datasets
        )


_LOOKUP: Final = ("revision", "words")  # they select the encoder, and its import into the store


def find_encoder_systems(
    site: RunContext, names: Sequence[str], reading: Reading, precision: Precision
) -> list[NamedEncoder]:
    """Find encoders and give each a unique label, with the suffix "(bf16)" if that precision was requested.

    The precision chosen by `auto` is in each score's signature.

    Raises:
        ValueError: Two encoders have the same label.
        SourceError, AssetError, ArtifactMissingError, EncoderError: As `find_encoder_system`.
    """
    found = [find_encoder_system(site, name, reading) for name in names]
    labels = [one.label for one in found]
    if repeated := {label for label in labels if labels.count(label) > 1}:
        raise ValueError(
            f"two models have the same name: {', '.join(repeated)}. Give each model once, or rename a folder."
        )
    suffix = " (bf16)" if precision == "bf16" else ""
    return [one.model_copy(update={"label": one.label + suffix}) for one in found]


def find_encoder_system(site: RunContext, name: str, reading: Reading) -> NamedEncoder:
    """Find an encoder by folder, `embedded:` name, Hub id, or `checkpoint/<key>` or `report/<key>` of the store.

    Raises:
        SourceError, AssetError, ArtifactMissingError: The encoder does not exist.
        EncoderError: The folder describes an encoder that this project cannot compute.
    """
    from models.encoder.serialization.load import saved_config  # imports transformers

    encoder = find_encoder(site, name, reading.revision, reading.words)
    identity = identity_of(encoder)
    named = EncoderConfig(model=name, max_length=DEFAULT_LENGTH)
    described = saved_config(described_folder(site.open_store(), encoder), identity) or named
    given = {field: value for field, value in reading if value is not None and field not in _LOOKUP}
    return NamedEncoder(
        label=str(encoder) if isinstance(encoder, CheckpointRef) and not is_vectors_file(name) else named.short_name,
        encoder=encoder,
        # model_validate, since model_copy would accept a length of 0.
        config=EncoderConfig.model_validate({**described.model_dump(), **given, "model": identity}),
    )


class Reading(Record):
    """Encoder settings by the user; they override a sentence-transformers folder and complete a bare transformer."""

    pooling: Pooling | Joined | None = None
    """Pooling; defaults to the folder's, else `mean`."""
    max_length: int | None = None
    """Maximum tokens of a sentence; defaults to the folder's, else 64."""
    revision: str | None = None
    """Commit of a Hub model."""
    words: WordsConfig = WordsConfig()
    """Word tokenization for a file of word vectors."""
    cnn: CNNConfig | None = None
    """Convolutions that fine-tuning adds to a transformer without any, such as IS-BERT's; frozen evaluations do not use
    them."""
    prompt: str | None = None
    """Prefix of every text: a prompt name of the folder, or the text; defaults to the folder's default prompt."""


class EvaluationSettings(ScoringConfig):
    """Settings of an evaluation."""

    reading: Reading = Reading()
    """Pooling and length of bare transformers."""
    stsb: TrainingConfig = STSB_CONFIG
    """Fine-tuning of an encoder on STS-B."""
    afs: TrainingConfig = AFS_CONFIG
    """Fine-tuning of an encoder on AFS."""
    stsb_cross: TrainingConfig = STSB_CROSS_CONFIG
    """Fine-tuning of a cross-encoder on STS-B."""
    afs_cross: TrainingConfig = AFS_CROSS_CONFIG
    """Fine-tuning of a cross-encoder on AFS."""
    seeds: int = Field(10, ge=2)
    """Number of seeds of supervised STS-B; the scores are their mean and standard deviation."""
