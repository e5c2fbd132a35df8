"""Find artifacts by the names that users type: a kind, the beginning of a key, `latest`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bsl.storage.artifacts.garbage_collection import readable_manifests
from bsl.storage.artifacts.refs import KINDS
from bsl.storage.errors import ArtifactMissingError
from bsl.storage.filesystem.spelling import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bsl.storage.artifacts.refs import ArtifactRef
    from bsl.storage.artifacts.store import Store

LATEST: Final = "latest"
MOST_COMPARED: Final = 26  # each run gets a letter


def check_kind(store: Store, kind: str) -> None:
    """Check that a kind of artifact is known or in the store.

    Raises:
        ArtifactMissingError: neither; the message suggests the nearest kind.
    """
    if kind.partition("/")[0] in KINDS or store.refs(kind):
        return
    known = sorted(KINDS.keys() | {ref.kind.partition("/")[0] for ref in store.refs()})
    hint = did_you_mean(kind, known)
    raise ArtifactMissingError(f"unknown artifact kind {kind[:80]!r}.{hint} Known kinds: {', '.join(known)}")


def find(store: Store, text: str) -> ArtifactRef:
    """Return the artifact named by `<kind>/<beginning of key>`, by that beginning alone, or by `<kind>/<its run>`.

    `<kind>/latest` is the newest artifact of its kind, and `latest` the newest of all.

    Raises:
        ArtifactMissingError: no artifact or several match, or the kind is unknown.
    """
    kind, _, key = text.rpartition("/")
    if kind:
        check_kind(store, kind)
    if key == LATEST:
        return _latest(store, kind)
    matching = _exact(kind, [ref for ref in store.refs(kind or None) if ref.key.startswith(key)])
    if not matching and kind:
        matching = [
            manifest.ref for manifest in readable_manifests(store, kind) if manifest.provenance.run.startswith(key)
        ]
    if len(matching) != 1:
        names = ", ".join(map(str, matching[:5])) or f"nothing in {store.address} (--store, BSL_STORE)"
        known = f"List them with `bsl artifacts ls{f' {kind}' if kind else ''}`."
        raise ArtifactMissingError(f"{text!r} matches {names}, expected the key of one artifact. {known}")
    return matching[0]


def find_reports(store: Store, texts: Sequence[str]) -> list[ArtifactRef]:
    """Return the reports to compare, each named by the beginning of its key or run, or by `latest`.

    Raises:
        ValueError: there are fewer than two or too many, a report is named twice, or a name is that of another kind.
        ArtifactMissingError: no report or several match a name.
    """
    names = [text.removeprefix("report/") for text in texts]
    if others := [name for name in names if "/" in name or ":" in name]:
        raise ValueError(
            f"{others[0]}: expected report/<key>. `bsl artifacts ls report` lists the runs to compare; `bsl evaluate` "
            "compares encoders."
        )
    reports = [find(store, f"report/{name}") for name in names]
    if len(set(reports)) < len(reports) or not 2 <= len(reports) <= MOST_COMPARED:
        raise ValueError(
            f"expected 2 to {MOST_COMPARED} different runs, found {len(set(reports))}. Name each once; "
            "`bsl artifacts ls report` lists them."
        )
    return reports


def _latest(store: Store, kind: str) -> ArtifactRef:
    manifests = {manifest.ref: manifest.created_at for manifest in readable_manifests(store, kind or None)}
    if not manifests:
        raise ArtifactMissingError(
            f"{store.address} contains no {kind or 'artifact'}, so there is no latest one. Make one first, or name the "
            "store that has it: --store, or BSL_STORE. By default it is .bsl/store of the current folder."
        )
    return max(_exact(kind, [*manifests]), key=manifests.__getitem__)


def _exact(kind: str, refs: list[ArtifactRef]) -> list[ArtifactRef]:
    """Return the references of exactly this kind, else all: `translations` are all nested."""
    return [ref for ref in refs if ref.kind == kind] or refs
