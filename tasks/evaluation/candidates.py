"""An encoder to evaluate, however a person names it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from models.encoder.config import USUAL, EncoderConfig
from storage.checkpoint import ENCODER
from storage.errors import ArtifactMissingError
from storage.lookup import find
from storage.refs import CheckpointRef
from tasks.evaluation.systems import Candidate
from tasks.pretrained import resolve_named_model

if TYPE_CHECKING:
    from collections.abc import Sequence

    from models.evaluation.config import Precision
    from storage.store import Store
    from storage.weights import ResolvedModel
    from tasks.evaluation.settings import Reading
    from tasks.site import Site

_MADE_HERE: Final = re.compile(r"(checkpoint|report)/[0-9a-f]{4,64}")


def find_candidates(site: Site, names: Sequence[str], reading: Reading, precision: Precision) -> list[Candidate]:
    """Find encoders; tables call each by a name of its own, which says so if it computes in bf16.

    Raises:
        ValueError: two would have one name.
        SourceError, AssetError, ArtifactMissingError, EncoderError: as `find_candidate`.
    """
    found = [find_candidate(site, name, reading) for name in names]
    labels = [one.label for one in found]
    if twice := {label for label in labels if labels.count(label) > 1}:
        raise ValueError(f"two models would both be called {', '.join(twice)}; give each once, or rename a folder")
    suffix = "" if precision == "fp32" else f" ({precision})"
    return [one.model_copy(update={"label": one.label + suffix}) for one in found]


def find_candidate(site: Site, name: str, reading: Reading) -> Candidate:
    """Find an encoder by folder, `embedded:` name, Hub id, or `checkpoint/<key>` or `report/<key>` of the store.

    Raises:
        SourceError, AssetError, ArtifactMissingError: nobody has it.
        EncoderError: the folder describes an encoder that cannot be computed here.
    """
    from models.encoder.saved import saved_config  # imports transformers

    encoder: CheckpointRef | ResolvedModel
    label = "/".join(name.rstrip("/").split("/")[-2:])  # a machine's path has no place in a table
    if _MADE_HERE.fullmatch(name):
        store = site.open_store()
        encoder = _checkpoint(store, name)
        folder, identity, label = store.fetch(encoder) / ENCODER, encoder.path, str(encoder)
    else:
        encoder = resolve_named_model(site, name, reading.revision)
        folder, identity = encoder.described, encoder.identity
    described = saved_config(folder, identity) or EncoderConfig(model=identity, max_length=USUAL)
    given = {field: value for field, value in reading if value is not None and field != "revision"}
    # Validated as a whole: model_copy would let a length of 0 pass.
    return Candidate(
        label=label, encoder=encoder, config=EncoderConfig.model_validate({**described.model_dump(), **given})
    )


def _checkpoint(store: Store, name: str) -> CheckpointRef:
    found = find(store, name)
    if found.kind == "checkpoint":
        return CheckpointRef(key=found.key)
    for entry in store.manifest(found).provenance.inputs.values():
        if entry.kind == "checkpoint":
            return CheckpointRef(key=entry.key)
    raise ArtifactMissingError(f"{name} names no checkpoint among its inputs; give checkpoint/<key>")
