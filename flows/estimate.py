"""Estimate how long a run will take, from the durations of similar artifacts in the store."""

from __future__ import annotations

from collections import defaultdict
from math import inf, prod
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bsl.flows.parameters import leaves
from bsl.models.runtime.progress import spelled
from bsl.storage.errors import StorageError
from bsl.storage.filesystem.names import MANIFEST

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bsl.storage.artifacts.manifest import Manifest
    from bsl.storage.artifacts.store import Store
    from bsl.tasks.stage.progress import StageRun

_SIMILAR: Final = 0.8  # share of equal settings from which on an artifact's duration is used
_DATA: Final = ("corpus", "views", "pairs", "passages")  # kinds of inputs whose size decides the duration
_PROPORTIONAL: Final = ".max_steps"  # setting that the duration is proportional to
_MOST: Final = 100  # manifests to read of each kind
_LISTED: Final = 0.1  # share of the total from which on a stage is listed


def estimate(store: Store, to_make: Sequence[StageRun]) -> str:
    """Return a line such as `expected, as in earlier runs: ~8 min (train ~5 min; embed ~2 min)`; empty if unknown.

    Of a remote store, no manifest is read, which would take long.
    """
    kinds = {step.ref.kind for step in to_make} if store.local else set()
    earlier = [manifest for kind in sorted(kinds) for manifest in _manifests(store, kind)]
    seconds: defaultdict[str, float] = defaultdict(float)
    unknown: set[str] = set()
    for step in {step.ref.path: step for step in to_make}.values():
        expected = _seconds(step, [manifest for manifest in earlier if manifest.provenance.stage == step.stage])
        if expected is None:
            unknown.add(step.stage)
        else:
            seconds[step.stage] += expected
    total = sum(seconds.values())
    parts = [f"{stage} {spelled(part)}" for stage, part in seconds.items() if part >= _LISTED * total]
    parts += [f"unknown: {', '.join(sorted(unknown))}"] if unknown else []
    least = "at least " if unknown else ""
    return f"expected, as in earlier runs: {least}{spelled(total)} ({'; '.join(parts)})" if seconds else ""


def _seconds(step: StageRun, earlier: Sequence[Manifest]) -> float | None:
    """Return the duration of the artifact of the same data with the most equal settings; None without a similar one."""
    data = {ref.path for ref in step.inputs if ref.kind in _DATA}
    planned = dict(leaves(step.config))
    best: tuple[float, float | None] = (_SIMILAR, None)
    for manifest in earlier:
        inputs = manifest.provenance.inputs.values()
        if {f"{entry.kind}/{entry.key}" for entry in inputs if entry.kind in _DATA} == data:
            found = dict(leaves(manifest.provenance.config))
            share = _equal_share(planned, found)
            best = max(best, (share, manifest.duration_s * _ratio(planned, found)), key=lambda pair: pair[0])
    return best[1]


def _manifests(store: Store, kind: str) -> Iterator[Manifest]:
    """Yield the manifests of the newest artifacts of a kind in a local store."""
    for ref in sorted(store.refs(kind), key=lambda ref: _age(Path(store.path(ref), MANIFEST)))[:_MOST]:
        try:
            yield store.manifest(ref)
        except StorageError:  # the run makes it again, or reports it
            continue


def _age(path: Path) -> float:
    """Return a number that is smaller for newer files; infinite for a deleted file."""
    try:
        return -path.stat().st_mtime
    except OSError:
        return inf


def _equal_share(first: Mapping[str, object], second: Mapping[str, object]) -> float:
    equal = [name for name in first.keys() & second.keys() if first[name] == second[name]]
    return len(equal) / len(first.keys() | second.keys()) if first or second else 1.0


def _ratio(first: Mapping[str, object], second: Mapping[str, object]) -> float:
    """Return how much more work the first settings are than the second, as far as a setting says so."""
    pairs = [(first[name], second.get(name)) for name in first if name.endswith(_PROPORTIONAL)]
    return prod(one / other for one, other in pairs if isinstance(one, int) and isinstance(other, int))
