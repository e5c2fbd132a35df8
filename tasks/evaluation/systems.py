"""What is evaluated: an encoder that was found, or vectors, whatever made them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from models.encoder.config import EncoderConfig
from storage.artifacts.refs import CheckpointRef, EmbeddingsRef
from storage.sources.model_sources import ResolvedModel

if TYPE_CHECKING:
    from tasks.corpus.evaluation_sets import EvaluationSet


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
