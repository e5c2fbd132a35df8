"""References to artifacts: tasks exchange these instead of frames and tensors."""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

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

    A kind whose references must not be mistaken for others' has a subclass.
    """

    kind: str = Field(pattern=KIND)
    key: str = Field(pattern=SHA256)

    @property
    def path(self) -> str:
        """`<kind>/<key>`, relative to the store."""
        return f"{self.kind}/{self.key}"

    def __str__(self) -> str:
        return f"{self.kind}/{self.key[:12]}"


def deletion(ref: ArtifactRef) -> str:
    """Return the remedy for a damaged artifact: the command that deletes it."""
    return f"Delete it (`bsl artifacts delete {ref}`), and run its stage again."


class CorpusRef(ArtifactRef):
    """Unique normalised sentences."""

    kind: Literal["corpus"] = "corpus"


class PassagesRef(ArtifactRef):
    """Sentences of documents in order, some documents held out."""

    kind: Literal["passages"] = "passages"


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


class ScoresRef(ArtifactRef):
    """Figures of one system."""

    kind: Literal["scores"] = "scores"


class ComparisonRef(ArtifactRef):
    """Differences of two systems on the same pairs."""

    kind: Literal["comparison"] = "comparison"


class ReportRef(ArtifactRef):
    """Tables, plots and prose of one run."""

    kind: Literal["report"] = "report"


class ProofRef(ArtifactRef):
    """An adapted encoder compared with its original, on text used neither for training nor for selection."""

    kind: Literal["proof"] = "proof"


class ClassifierRef(ArtifactRef):
    """A linear classifier on an encoder's vectors, and its confusion table on test labels."""

    kind: Literal["classifier"] = "classifier"


class Kind(NamedTuple):
    """How a kind of artifacts is shown.

    Attributes:
        place: position in a run; 0: it has no page of its own.
        unit: noun for a row, if the first table has a row for each; empty otherwise.
    """

    place: int = 0
    unit: str = ""


KINDS: Final[dict[str, Kind]] = {
    "corpus": Kind(1, "sentence"),
    "passages": Kind(1),
    "nli": Kind(1),
    "translations": Kind(),
    "views": Kind(2, "view"),
    "pairs": Kind(3, "pair"),
    "checkpoint": Kind(4),
    "embeddings": Kind(5, "vector"),
    "transform": Kind(6),
    "predictions": Kind(7),
    "scores": Kind(7),
    "comparison": Kind(8),
    "weighing": Kind(8),
    "proof": Kind(8),
    "classifier": Kind(8),
    "evaluation": Kind(LAST_PLACE),
    "report": Kind(LAST_PLACE),
    "sweep": Kind(LAST_PLACE),
    "reproduction": Kind(LAST_PLACE),
}


def kind_of(name: str) -> Kind:
    """Return how a kind is shown, also a nested one."""
    return KINDS.get(name.partition("/")[0], Kind())
