"""Artifacts by the names that people give them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage.errors import ArtifactMissingError

if TYPE_CHECKING:
    from storage.refs import ArtifactRef
    from storage.store import Store


def find(store: Store, text: str) -> ArtifactRef:
    """The artifact that a person means by `<kind>/<beginning of key>`, or by the beginning of its key alone.

    Raises:
        ArtifactMissingError: none or several fit.
    """
    kind, _, key = text.rpartition("/")
    fitting = [ref for ref in store.refs(kind or None) if ref.key.startswith(key)]
    if len(fitting) != 1:
        names = ", ".join(str(ref) for ref in fitting[:5]) or "nothing"
        raise ArtifactMissingError(f"{text!r} fits {names}; expected exactly one of `bsl artifacts ls`")
    return fitting[0]
