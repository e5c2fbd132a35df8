"""What is evaluated: an encoder that was found, and whatever else made vectors."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from models.encoder.config import EncoderConfig
from storage.refs import CheckpointRef, EmbeddingsRef
from storage.weights import ResolvedModel


class Candidate(BaseModel):
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
    """

    label: str
    checkpoint: str
    embeddings: EmbeddingsRef
