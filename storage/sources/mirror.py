"""A folder that is filled as a cache of the Hub, for machines without it: `HF_HOME=FOLDER HF_HUB_OFFLINE=1` uses it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal

from storage.datasets.registry import DATASETS
from storage.errors import SourceError
from storage.hub.datasets import check_table
from storage.hub.models import HubModel, pin_model
from storage.readers.benchmarks.clustering import read_clusters
from storage.readers.benchmarks.senteval import TRANSFER_SETS
from storage.sources.model_sources import find_mirrored
from storage.sources.read import check_columns, local_files
from storage.sources.scored_sets import read_declared_pairs, read_transfer_table
from storage.sources.sources import SourceSpec, resolve_source, spec_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from storage.sources.sources import ResolvedSource

_HUB_ID: Final = re.compile(r"[\w.-]+(/[\w.-]+)?")
MODEL: Final = "model:"  # prefix of a model's name
Outcome = tuple[str, Literal["written", "kept", "folder"]]
"""A data set or model at its commit, and what happened: fetched, there already, or found in BSL_DATA_MIRROR."""


def fill_cache(folder: Path, wanted: str | SourceSpec, own: str | None = None) -> Iterator[Outcome]:
    """Bring a data set or a model into a cache of the Hub.

    Args:
        folder: HF_HOME of the machines that use it.
        wanted: a declared set `<name>` or `<name>/<split>`, another of the Hub `<hub id>[@<revision>][/<split>]`, a
            model `model:<hub id>[@<revision>]`, or a source of a recipe, which may name a configuration.
        own: the folder of one's own files (BSL_DATA_MIRROR); what it has is not fetched.

    Yields:
        Its name with the commit, and what happened.

    Raises:
        SourceError: neither the Hub nor the own folder has it, or it is not as declared.
    """
    if isinstance(wanted, str) and wanted.startswith(MODEL):
        yield _model(folder / "hub", wanted, own)
        return
    for spec in [wanted] if isinstance(wanted, SourceSpec) else _tables(wanted):
        source = resolve_source(spec, own, folder)
        known = source.hub is None or check_table(source.hub)
        _check_declared(spec, source)
        yield (
            (source.files[0], "folder") if source.hub is None else (source.hub.address, "kept" if known else "written")
        )


def _model(cache: Path, wanted: str, own: str | None) -> Outcome:
    hub_id, _, revision = wanted.removeprefix(MODEL).partition("@")
    if not _HUB_ID.fullmatch(hub_id) or ".." in hub_id:
        raise SourceError(f"{wanted!r}: expected {MODEL}<organisation>/<name> or {MODEL}<name>")
    if own and (found := find_mirrored(own, hub_id, revision or None)) is not None:
        return found.address, "folder"
    model = HubModel(hub_id=hub_id, commit=pin_model(hub_id, revision or None, cache), cache=cache)
    known = model.check()
    model.fetched()
    return f"{MODEL}{hub_id}@{model.commit}", "kept" if known else "written"


def _tables(name: str) -> Iterator[SourceSpec]:
    """The splits that a name stands for, each as a source."""
    spec = spec_of(name)
    if spec is None:
        raise SourceError(
            f"{name!r} is not declared; expected {MODEL}<hub id>, <hub id>[@<revision>][/<split>] or one of "
            f"{', '.join(DATASETS)}"
        )
    declared = DATASETS.get(str(spec.dataset))
    for one in declared.splits if declared and spec.split is None else [spec.split]:
        yield spec.model_copy(update={"split": one})


def _check_declared(spec: SourceSpec, source: ResolvedSource) -> None:
    """Read a set as a run reads it.

    Raises:
        SourceError: it is not the papers' own, or has no column of text. The machine that scores it should not be the
            first to say so.
    """
    declared = DATASETS.get(str(spec.dataset))
    split = spec.split or "train"
    if declared is None:
        check_columns(source)
    elif declared.name in TRANSFER_SETS:
        read_transfer_table(declared.name, split, source)
    elif "clustering" in declared.suites:
        read_clusters(local_files(source)[0])
    elif declared.score_range:
        read_declared_pairs(declared.name, split, source)
    else:
        check_columns(source)
