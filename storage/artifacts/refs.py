"""References to artifacts: tasks exchange these instead of frames and tensors."""

from __future__ import annotations

import re
from typing import ClassVar, Final, Literal

from pydantic import Field

from bsl.storage.filesystem.digests import SHA256
from bsl.storage.record import Record

KIND: Final = r"^[a-z0-9_]{1,64}(/[a-z0-9-]{1,64})?$"
ADDRESS: Final = re.compile(r"(?P<kind>[a-z0-9_]{1,64}(?:/[a-z0-9-]{1,64})??)/(?P<key>[0-9a-f]{64})(?=/|\Z)")
"""The beginning of a path relative to the store: kind and key of the artifact that contains it."""
ENCODER: Final = "encoder"
"""Folder of a checkpoint with the trained encoder, in the format of sentence-transformers."""
LAST_PLACE: Final = 9
"""Position of what a run makes at its end."""
STATE: Final = "state"
"""Folder of a checkpoint with the training run's last snapshot."""


class ArtifactRef(Record):
    """Kind and key of an artifact, the folder `<store>/<kind>/<key>/`. A kind may be nested (`translations/<name>`).

    A subclass declares a kind and how it is shown: `place`, its position in a run (0: it has no page of its own), and
    `unit`, the noun for one row, if the first table has a row for each.
    """

    place: ClassVar[int] = 0
    unit: ClassVar[str] = ""

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
    place = 1
    unit = "sentence"


class PassagesRef(ArtifactRef):
    """Sentences of documents in order, some documents held out."""

    kind: Literal["passages"] = "passages"
    place = 1


class NliRef(ArtifactRef):
    """Labelled pairs of a corpus's sentences."""

    kind: Literal["nli"] = "nli"
    place = 1


class ViewsRef(ArtifactRef):
    """Augmented sentences, several views of each."""

    kind: Literal["views"] = "views"
    place = 2
    unit = "view"


class PairsRef(ArtifactRef):
    """Training pairs."""

    kind: Literal["pairs"] = "pairs"
    place = 3
    unit = "pair"


class CheckpointRef(ArtifactRef):
    """A trained model with its log and an exported encoder."""

    kind: Literal["checkpoint"] = "checkpoint"
    place = 4


class EmbeddingsRef(ArtifactRef):
    """Vectors of unique sentences under one system: the table `embeddings`, or `sparse_embeddings`."""

    kind: Literal["embeddings"] = "embeddings"
    place = 5
    unit = "vector"


class TransformRef(ArtifactRef):
    """A transform fitted on a corpus's vectors."""

    kind: Literal["transform"] = "transform"
    place = 6


class PredictionsRef(ArtifactRef):
    """Cosines of test pairs under an encoder that was fine-tuned on training pairs."""

    kind: Literal["predictions"] = "predictions"
    place = 7


class ScoresRef(ArtifactRef):
    """Figures of one system."""

    kind: Literal["scores"] = "scores"
    place = 7


class ComparisonRef(ArtifactRef):
    """Differences of two systems on the same pairs."""

    kind: Literal["comparison"] = "comparison"
    place = 8


class EvaluationRef(ArtifactRef):
    """Scores of one or more encoders, their differences, and the sets that could not be scored."""

    kind: Literal["evaluation"] = "evaluation"
    place = LAST_PLACE


class ReportRef(ArtifactRef):
    """Tables, plots and prose of one run."""

    kind: Literal["report"] = "report"
    place = LAST_PLACE


class SweepRef(ArtifactRef):
    """Several systems, configurations or methods with several seeds each, compared."""

    kind: Literal["sweep"] = "sweep"
    place = LAST_PLACE


class ReproductionRef(ArtifactRef):
    """A published row of results, compared with runs of its recipe."""

    kind: Literal["reproduction"] = "reproduction"
    place = LAST_PLACE


class WeighingRef(ArtifactRef):
    """Scores of the original encoder merged with the trained one at several shares, and the chosen share."""

    kind: Literal["weighing"] = "weighing"
    place = 8


class ProofRef(ArtifactRef):
    """An adapted encoder compared with its original, on text used neither for training nor for selection."""

    kind: Literal["proof"] = "proof"
    place = 8


class ClassifierRef(ArtifactRef):
    """A linear classifier on an encoder's vectors, and its confusion table on test labels."""

    kind: Literal["classifier"] = "classifier"
    place = 8


class TranslationsRef(ArtifactRef):
    """New translations of one translator, a part of its memory; the kind names the translator."""

    kind: str = Field("translations", pattern=KIND)


KINDS: Final[dict[str, type[ArtifactRef]]] = {
    str(ref.model_fields["kind"].default): ref for ref in ArtifactRef.__subclasses__()
}
"""Kind → class of its references."""


def kind_of(name: str) -> type[ArtifactRef]:
    """Return the class that declares a kind, also of a nested one; `ArtifactRef` for an unknown kind."""
    return KINDS.get(name.partition("/")[0], ArtifactRef)
