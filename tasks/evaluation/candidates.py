"""An encoder to evaluate, however a person names it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from models.encoder.config import USUAL, EncoderConfig
from storage.artifacts.refs import CheckpointRef
from storage.sources.word_vectors import is_vectors_file
from tasks.embedding.encoders import described_folder, find_encoder, identity_of
from tasks.evaluation.systems import Candidate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from models.precision import Precision
    from tasks.evaluation.systems import Reading
    from tasks.stage.run_context import RunContext

_NOT_THE_ENCODER_S: Final = ("revision", "words")  # which it is, and how it is read into the store


def find_candidates(site: RunContext, names: Sequence[str], reading: Reading, precision: Precision) -> list[Candidate]:
    """Find encoders; tables call each by a name of its own, which says so if bf16 was asked for.

    What `auto` came to is in each figure's signature.

    Raises:
        ValueError: two would have one name.
        SourceError, AssetError, ArtifactMissingError, EncoderError: as `find_candidate`.
    """
    found = [find_candidate(site, name, reading) for name in names]
    labels = [one.label for one in found]
    if twice := {label for label in labels if labels.count(label) > 1}:
        raise ValueError(f"two models would both be called {', '.join(twice)}; give each once, or rename a folder")
    suffix = " (bf16)" if precision == "bf16" else ""
    return [one.model_copy(update={"label": one.label + suffix}) for one in found]


def find_candidate(site: RunContext, name: str, reading: Reading) -> Candidate:
    """Find an encoder by folder, `embedded:` name, Hub id, or `checkpoint/<key>` or `report/<key>` of the store.

    Raises:
        SourceError, AssetError, ArtifactMissingError: nobody has it.
        EncoderError: the folder describes an encoder that cannot be computed here.
    """
    from models.encoder.serialization.settings import saved_config  # imports transformers

    encoder = find_encoder(site, name, reading.revision, reading.words)
    identity = identity_of(encoder)
    named = EncoderConfig(model=name, max_length=USUAL)
    described = saved_config(described_folder(site.open_store(), encoder), identity) or named
    given = {field: value for field, value in reading if value is not None and field not in _NOT_THE_ENCODER_S}
    return Candidate(
        label=str(encoder) if isinstance(encoder, CheckpointRef) and not is_vectors_file(name) else named.short_name,
        encoder=encoder,
        # Validated as a whole: model_copy would let a length of 0 pass.
        config=EncoderConfig.model_validate({**described.model_dump(), **given, "model": identity}),
    )
