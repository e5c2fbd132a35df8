"""References to artifacts: tasks exchange these instead of frames and tensors."""

from __future__ import annotations

import re
from typing import Final, Literal

from pydantic import Field

from storage.filesystem.digests import SHA256
from storage.record import Record

KIND: Final = r"^[a-z0-9_]{1,64}(/[a-z0-9-]{1,64})?$"
ADDRESS: Final = re.compile(r"(?P<kind>[a-z0-9_]{1,64}(?:/[a-z0-9-]{1,64})??)/(?P<key>[0-9a-f]{64})(?=/|\Z)")
"""The beginning of a path relative to the store: kind and key of the artifact that contains it."""
ENCODER: Final = "encoder"
"""Folder of a checkpoint with the trained encoder, in the format of sentence-transformers."""
STATE: Final = "state"
"""Folder of a checkpoint with the training run's last snapshot."""


class ArtifactRef(Record):
    """Kind and key of an artifact, the folder `<store>/<kind>/<key>/`. A kind may be nested (`translations/<name>`)."""

    kind: str = Field(pattern=KIND)
    key: str = Field(pattern=SHA256)

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
    """A transform fitted on a corpus's vectors."""

    kind: Literal["transform"] = "transform"


class PredictionsRef(ArtifactRef):
    """Cosines of test pairs under an encoder that was fine-tuned on training pairs."""

    kind: Literal["predictions"] = "predictions"


class ScoresRef(ArtifactRef):
    """Figures of one system."""

    kind: Literal["scores"] = "scores"


class ComparisonRef(ArtifactRef):
    """Differences of two systems on the same pairs."""

    kind: Literal["comparison"] = "comparison"


class EvaluationRef(ArtifactRef):
    """Scores of one or more encoders, their differences, and the sets that could not be scored."""

    kind: Literal["evaluation"] = "evaluation"


class ReportRef(ArtifactRef):
    """Tables, plots and prose of one run."""

    kind: Literal["report"] = "report"


class SweepRef(ArtifactRef):
    """Several systems, configurations or methods with several seeds each, compared."""

    kind: Literal["sweep"] = "sweep"


class ReproductionRef(ArtifactRef):
    """A published row of results, compared with runs of its recipe."""

    kind: Literal["reproduction"] = "reproduction"


class PaceRef(ArtifactRef):
    """How long a step of a training or a fit takes."""

    kind: Literal["pace"] = "pace"


class WeighingRef(ArtifactRef):
    """Scores of the original encoder merged with the trained one at several shares, and the chosen share."""

    kind: Literal["weighing"] = "weighing"


class ProofRef(ArtifactRef):
    """An adapted encoder compared with its original, on text used neither for training nor for selection."""

    kind: Literal["proof"] = "proof"
