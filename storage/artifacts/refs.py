"""References to artifacts: what tasks hand to each other instead of frames and tensors."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

KIND: Final = r"^[a-z0-9_]{1,64}(/[a-z0-9-]{1,64})?$"
KEY: Final = r"^[0-9a-f]{64}$"
ENCODER: Final = "encoder"
"""Folder of a checkpoint with the trained encoder, as sentence-transformers opens it."""
STATE: Final = "state"
"""Folder of a checkpoint with the training run's last snapshot."""


class ArtifactRef(BaseModel):
    """The name of one artifact: `<store>/<kind>/<key>/`. A kind may be nested (`translations/<translator>`)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str = Field(pattern=KIND)
    key: str = Field(pattern=KEY)

    @property
    def path(self) -> str:
        """`<kind>/<key>`, relative to the store."""
        return f"{self.kind}/{self.key}"

    def __str__(self) -> str:
        return f"{self.kind}/{self.key[:12]}"


class CorpusRef(ArtifactRef):
    """Unique normalised sentences."""

    kind: Literal["corpus"] = "corpus"


class PassagesRef(ArtifactRef):
    """Sentences of documents in order, some documents held out."""

    kind: Literal["passages"] = "passages"


class NliRef(ArtifactRef):
    """Labelled pairs of a corpus's sentences."""

    kind: Literal["nli"] = "nli"


class ViewsRef(ArtifactRef):
    """Augmented sentences, several views of each."""

    kind: Literal["views"] = "views"


class PairsRef(ArtifactRef):
    """Training pairs."""

    kind: Literal["pairs"] = "pairs"


class CheckpointRef(ArtifactRef):
    """A trained model with its log and an exported encoder."""

    kind: Literal["checkpoint"] = "checkpoint"


class EmbeddingsRef(ArtifactRef):
    """Vectors of unique sentences under one system: the table `embeddings`, or `sparse_embeddings`."""

    kind: Literal["embeddings"] = "embeddings"


class TransformRef(ArtifactRef):
    """What was fitted on a corpus's vectors to change others."""

    kind: Literal["transform"] = "transform"


class PredictionsRef(ArtifactRef):
    """Cosines of test pairs under an encoder that was fine-tuned on others."""

    kind: Literal["predictions"] = "predictions"


class ScoresRef(ArtifactRef):
    """Figures of one system."""

    kind: Literal["scores"] = "scores"


class ComparisonRef(ArtifactRef):
    """Differences of two systems on the same pairs."""

    kind: Literal["comparison"] = "comparison"


class EvaluationRef(ArtifactRef):
    """Scores of one or more encoders, their differences, and what could not be scored."""

    kind: Literal["evaluation"] = "evaluation"


class ReportRef(ArtifactRef):
    """Tables, plots and prose of one run."""

    kind: Literal["report"] = "report"


class SweepRef(ArtifactRef):
    """Several systems, configurations or methods with several seeds each, compared."""

    kind: Literal["sweep"] = "sweep"


class ReproductionRef(ArtifactRef):
    """A published row beside what runs of its recipe measured."""

    kind: Literal["reproduction"] = "reproduction"


class PaceRef(ArtifactRef):
    """How long a step of a training or a fit takes."""

    kind: Literal["pace"] = "pace"


class WeighingRef(ArtifactRef):
    """What each share of a trained encoder in the one that it came from finds, and the share that was chosen."""

    kind: Literal["weighing"] = "weighing"


class ProofRef(ArtifactRef):
    """An adapted encoder beside the one that it came from, on text that neither training nor choice has seen."""

    kind: Literal["proof"] = "proof"
