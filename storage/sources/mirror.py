"""Fill a folder as a Hub cache for offline machines, which set `HF_HOME=FOLDER HF_HUB_OFFLINE=1`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal

from bsl.storage.datasets.registry import DATASETS
from bsl.storage.errors import SourceError
from bsl.storage.hub.datasets import check_table
from bsl.storage.hub.models import HubModel
from bsl.storage.hub.repositories import Repository
from bsl.storage.readers.benchmarks.senteval import TRANSFER_SETS
from bsl.storage.sources.model_sources import MirroredModel, find_mirrored
from bsl.storage.sources.read import check_columns
from bsl.storage.sources.scored_sets import read_declared_pairs, read_transfer_table
from bsl.storage.sources.sources import SourceSpec, dataset_of, resolve_source, spec_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bsl.storage.sources.sources import ResolvedSource

_HUB_ID: Final = re.compile(r"[\w.-]+(/[\w.-]+)?")
MODEL: Final = "model:"  # prefix of a model's name
Outcome = tuple[str, Literal["written", "kept", "folder"]]
"""A dataset or model at its commit, and its outcome: fetched, already present, or found in BSL_DATA_MIRROR."""


def fill_cache(folder: Path, target: str | SourceSpec, mirror: str | None = None) -> Iterator[Outcome]:
    """Fetch a dataset or a model into a Hub cache; yield each name with its commit, and the outcome.

    Args:
        folder: HF_HOME of the machines that use it.
        target: a declared dataset `<name>` or `<name>/<split>`, another Hub dataset
            `<hub id>[@<revision>][/<split>]`, a model `model:<hub id>[@<revision>]`, or a recipe's source, which may
            name a configuration.
        mirror: the user's folder of files (BSL_DATA_MIRROR); sets in it are not fetched.

    Raises:
        SourceError: it is neither on the Hub nor in the user's folder, or differs from its declaration.
    """
    if isinstance(target, str) and target.startswith(MODEL):
        yield _model(folder / "hub", target, mirror)
        return
    for spec in [target] if isinstance(target, SourceSpec) else _tables(target):
        source = resolve_source(spec, mirror, folder / "hub")
        known = source.hub is None or check_table(source.hub)
        _check_declared(spec, source)
        yield (
            (source.files[0], "folder") if source.hub is None else (source.hub.address, "kept" if known else "written")
        )


def _model(cache: Path, target: str, mirror: str | None) -> Outcome:
    hub_id, _, revision = target.removeprefix(MODEL).partition("@")
    if not _HUB_ID.fullmatch(hub_id) or ".." in hub_id:
        raise SourceError(
            f"{target!r}: only models on the Hub are fetched, expected {MODEL}<organisation>/<name> or {MODEL}<name>"
        )
    if mirror and (found := find_mirrored(mirror, hub_id, revision or None)) is not None:
        place = found.location
        return place.address if isinstance(place, MirroredModel) else str(place), "folder"
    repository = Repository(kind="model", name=hub_id, cache=cache)
    model = HubModel(name=hub_id, cache=cache, commit=repository.pinned(revision or None))
    known = model.check()
    model.fetched()
    return f"{MODEL}{hub_id}@{model.commit}", "kept" if known else "written"


def _tables(name: str) -> Iterator[SourceSpec]:
    """Yield the splits of a named dataset, each as a source."""
    spec = spec_of(name)
    if spec is None:
        raise SourceError(
            f"unknown dataset {name!r}, expected {MODEL}<hub id>, <hub id>[@<revision>][/<split>] "
            f"or one of {', '.join(DATASETS)}"
        )
    for split in [spec.split] if spec.split else dataset_of(spec).splits:
        yield spec.model_copy(update={"split": split})


def _check_declared(spec: SourceSpec, source: ResolvedSource) -> None:
    """Read a dataset as a run does, so that an error appears here and not on the offline machine."""
    dataset, split = dataset_of(spec), spec.split or "train"
    if dataset.name in TRANSFER_SETS:
        read_transfer_table(dataset.name, split, source)
    elif dataset.score_range:
        read_declared_pairs(dataset.name, split, source)
    else:
        check_columns(source)
