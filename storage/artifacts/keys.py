"""Compute an artifact's key from its stage, configuration and inputs.

Equal inputs give equal keys on every machine. Fields that cannot change the result (paths, device) are declared
`NotInKey` and excluded from the digest; so is a field declared `AddedAs` while it has its first default.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from enum import Enum

from pydantic import BaseModel

from bsl.storage.artifacts.refs import ArtifactRef
from bsl.storage.record import AddedAs, NotInKey, Record


def canonical(value: object) -> object:
    """Return the JSON form of a stage argument, equal on every machine.

    Raises:
        TypeError: the value has no such form (a frame, a tensor, a set).
    """
    if isinstance(value, ArtifactRef):
        return value.path
    if isinstance(value, BaseModel):
        fields = {name: (getattr(value, name), info.metadata) for name, info in type(value).model_fields.items()}
        kept = {name: canonical(inner) for name, (inner, metadata) in fields.items() if _is_in_key(inner, metadata)}
        removed = value.removed if isinstance(value, Record) else {}
        return dict(sorted({**removed, **kept}.items()))
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Mapping):
        return {str(name): canonical(value[name]) for name in sorted(value)}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [canonical(item) for item in value]
    raise TypeError(
        f"{type(value).__name__} cannot be part of an artifact key. Pass a reference, a frozen config or a JSON value."
    )


def _is_in_key(value: object, metadata: Sequence[object]) -> bool:
    """Return whether keys contain a field with this value."""
    return NotInKey not in metadata and not any(isinstance(one, AddedAs) and one.value == value for one in metadata)


def artifact_key(stage: str, kind: str, stage_version: int, arguments: Mapping[str, object]) -> str:
    """Return the sha256 of (stage, kind, stage version, canonical arguments) as 64 hex digits.

    The key includes the stage's name, because stages of equal kind, version and configuration make different artifacts.
    """
    return fingerprint([stage, kind, stage_version, arguments])


def fingerprint(value: object) -> str:
    """Return the sha256 of a value's canonical JSON as 64 hex digits."""
    text = json.dumps(canonical(value), sort_keys=True, ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
