"""Systems to evaluate: encoders, found by name, and vectors of any origin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bsl.models.encoder.config import EncoderConfig
from bsl.storage.artifacts.refs import CheckpointRef, EmbeddingsRef
from bsl.storage.sources.word_vectors import is_vectors_file
from bsl.tasks.embedding.encoders import ResolvedEncoder, resolve

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bsl.models.encoder.config import EncoderOverrides
    from bsl.models.runtime.precision import Precision
    from bsl.tasks.corpus.evaluation_sets import EvaluationSet
    from bsl.tasks.stage.run_context import RunContext


class NamedEncoder(ResolvedEncoder):
    """An encoder with its name in tables."""

    label: str


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


def find_encoder_systems(
    site: RunContext, names: Sequence[str], reading: EncoderOverrides, precision: Precision
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


def find_encoder_system(site: RunContext, name: str, reading: EncoderOverrides) -> NamedEncoder:
    """Find an encoder by folder, `embedded:` name, Hub id, or `checkpoint/<key>` or `report/<key>` of the store.

    Raises:
        SourceError, AssetError, ArtifactMissingError: The encoder does not exist.
        EncoderError: The folder describes an encoder that this project cannot compute.
    """
    given = {field: value for field, value in reading if value is not None and field != "words"}
    config = EncoderConfig(model=name, **given)
    found = resolve(site, config, reading.words)
    is_artifact = isinstance(found.encoder, CheckpointRef) and not is_vectors_file(name)
    label = str(found.encoder) if is_artifact else config.short_name
    return NamedEncoder(label=label, encoder=found.encoder, config=found.config)
