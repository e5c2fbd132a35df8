"""What is evaluated: an encoder that was found, or vectors, whatever made them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, ConfigDict, Field

from models.encoder.config import USUAL, CNNConfig, EncoderConfig, Joined, Pooling, WordsConfig
from models.evaluation.config import ScoringConfig
from models.training.config import TrainingConfig, afs_config, afs_cross_config, stsb_config, stsb_cross_config
from storage.artifacts.refs import CheckpointRef, EmbeddingsRef
from storage.sources.model_sources import ResolvedModel
from storage.sources.word_vectors import is_vectors_file
from tasks.embedding.encoders import described_folder, find_encoder, identity_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from models.runtime.precision import Precision
    from tasks.corpus.evaluation_sets import EvaluationSet
    from tasks.stage.run_context import RunContext


class NamedEncoder(BaseModel):
    """An encoder that was found."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    label: str
    """What tables call it."""
    encoder: CheckpointRef | ResolvedModel
    config: EncoderConfig

    @property
    def checkpoint(self) -> str:
        """Key of the checkpoint, or what else identifies the encoder."""
        return self.encoder.key if isinstance(self.encoder, CheckpointRef) else self.encoder.identity


@dataclass(frozen=True)
class System:
    """Vectors of the sets' sentences, and whose they are.

    Attributes:
        label: what tables call it.
        checkpoint: what identifies the encoder behind it; empty for a system without one.
        embeddings: its vectors.
        datasets: the data sets that these vectors are for; None for all. A system that is fitted on each set has other
            vectors on each: it is several of these, under one label.
        folded: the encoder that gives these vectors itself, where they were transformed and there is one.
    """

    label: str
    checkpoint: str
    embeddings: EmbeddingsRef
    datasets: frozenset[str] | None = None
    folded: CheckpointRef | None = None

    def of(self, sets: tuple[EvaluationSet, ...]) -> tuple[EvaluationSet, ...]:
        """Those of some sets that it has vectors for."""
        return tuple(wanted for wanted in sets if self.datasets is None or wanted.dataset in self.datasets)


_NOT_THE_ENCODER_S: Final = ("revision", "words")  # which it is, and how it is read into the store


def find_encoder_systems(
    site: RunContext, names: Sequence[str], reading: Reading, precision: Precision
) -> list[NamedEncoder]:
    """Find encoders; tables call each by a name of its own, which says so if bf16 was asked for.

    What `auto` came to is in each figure's signature.

    Raises:
        ValueError: two would have one name.
        SourceError, AssetError, ArtifactMissingError, EncoderError: as `find_encoder_system`.
    """
    found = [find_encoder_system(site, name, reading) for name in names]
    labels = [one.label for one in found]
    if twice := {label for label in labels if labels.count(label) > 1}:
        raise ValueError(f"two models would both be called {', '.join(twice)}; give each once, or rename a folder")
    suffix = " (bf16)" if precision == "bf16" else ""
    return [one.model_copy(update={"label": one.label + suffix}) for one in found]


def find_encoder_system(site: RunContext, name: str, reading: Reading) -> NamedEncoder:
    """Find an encoder by folder, `embedded:` name, Hub id, or `checkpoint/<key>` or `report/<key>` of the store.

    Raises:
        SourceError, AssetError, ArtifactMissingError: nobody has it.
        EncoderError: the folder describes an encoder that cannot be computed here.
    """
    from models.encoder.serialization.load import saved_config  # imports transformers

    encoder = find_encoder(site, name, reading.revision, reading.words)
    identity = identity_of(encoder)
    named = EncoderConfig(model=name, max_length=USUAL)
    described = saved_config(described_folder(site.open_store(), encoder), identity) or named
    given = {field: value for field, value in reading if value is not None and field not in _NOT_THE_ENCODER_S}
    return NamedEncoder(
        label=str(encoder) if isinstance(encoder, CheckpointRef) and not is_vectors_file(name) else named.short_name,
        encoder=encoder,
        # Validated as a whole: model_copy would let a length of 0 pass.
        config=EncoderConfig.model_validate({**described.model_dump(), **given, "model": identity}),
    )


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
