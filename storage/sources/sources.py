"""Resolve the source of sentences that a user or recipe names: find its files and fingerprint them.

Locations are tried in this order: the source's `path`, embedded assets, the mirror, the Hub.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

import fsspec
from pydantic import ConfigDict, Field, model_validator

from bsl.storage.assets.embedded import EMBEDDED, TEXTS, embedded_path
from bsl.storage.datasets.declaration import Dataset
from bsl.storage.datasets.registry import DATASETS
from bsl.storage.errors import SourceError
from bsl.storage.filesystem.digests import joint_sha256
from bsl.storage.filesystem.spelling import nearest_name
from bsl.storage.filesystem.urls import Address, reachable
from bsl.storage.hub.datasets import HubTable
from bsl.storage.hub.repositories import Repository
from bsl.storage.readers.benchmarks.sts import parts_of
from bsl.storage.readers.encodings import Encoding
from bsl.storage.readers.formats import Format, format_of
from bsl.storage.record import AddedAs, NotInKey, Record
from bsl.storage.sources.paths import listed

if TYPE_CHECKING:
    from pathlib import Path

_HUB_SET: Final = re.compile(r"(\w[\w.-]*/\w[\w.-]*)(?:@([\w.-]+))?(?:/([^/\\\x00]+))?")  # not `./x`, a path
_OF_A_DATASET: Final = frozenset({"dataset", "split", "hub_config", "revision"})
_REMEDY: Final = "set BSL_DATA_MIRROR, or use a `path` or a Hub id; `bsl doctor` shows what is available"


class SourceSpec(Record):
    """A source of sentences, as named in a recipe or by the user."""

    model_config = ConfigDict(hide_input_in_errors=True)

    dataset: str | None = Field(None, min_length=1, pattern=r"^[^\x00]*$")
    """A declared dataset (`snli`), an embedded one (`embedded:nli`) or a Hub id (`organisation/name`)."""
    path: Address | None = None
    """File, folder (all files below it, except hidden ones) or pattern with `*` at any fsspec address; read instead of
    `dataset`, which is dropped."""
    split: str | None = Field(None, pattern=r"^[^/\\\x00]+$")
    """Split of a dataset; `train` or the only split by default."""
    name: str | None = Field(None, min_length=1)
    """Value of the corpus's column `source`; the name of the dataset, file or folder by default."""
    format: Format | None = None
    """Format of the files at `path`; by default from their suffix."""
    encoding: Encoding | None = None
    """Encoding of the files at `path` that are not UTF-8, such as `cp1252`."""
    columns: tuple[str, ...] = ()
    """Columns of sentences; by default from the known shapes (NLI, STS, triplets, `text`)."""
    label: str | None = None
    """NLI label column, for labelled pairs; by default from the known shapes, unless `columns` is given."""
    lang: str | None = Field(None, pattern=r"^[a-z]{2,3}$")
    """ISO 639 code of the sentences; by default the dataset's, or `en`."""
    hub_config: str | None = None
    """Configuration of a Hub dataset."""
    revision: str | None = None
    """Commit, tag or branch of a Hub dataset; by default the declared commit, or the newest."""
    limit: int | None = Field(None, ge=1, lt=2**63)
    """Maximum number of sentences, not counting those of earlier sources. The sentences with the smallest ids are used,
    which is a random sample. None: all."""

    @model_validator(mode="before")
    @classmethod
    def _path_replaces_dataset(cls, given: object) -> object:
        """Drop the dataset if there is a path, so that nothing takes the name or licence of a set that is not read."""
        if not isinstance(given, Mapping) or not given.get("path"):
            return given
        return {name: value for name, value in given.items() if name not in _OF_A_DATASET}

    @model_validator(mode="after")
    def _names_something(self) -> SourceSpec:
        if self.dataset is None and self.path is None:
            raise ValueError("a source needs a `dataset` or a `path`")
        named = (*self.columns, *((self.label,) if self.label else ()))
        if len(set(named)) < len(named):
            raise ValueError("`columns` and `label` of a source contain a column twice. Name each column once.")
        if ".." in (self.dataset or "").split("/"):
            raise ValueError("a `dataset` is a name, not a path. Set `path` for a file.")
        return self

    @property
    def address(self) -> str:
        """The path, or `<dataset>[@<revision>][/<split>]`."""
        revision = f"@{self.revision}" if self.revision else ""
        return self.path or f"{self.dataset}{revision}{f'/{self.split}' if self.split else ''}"


class ResolvedSource(Record):
    """A source that was found: its content, which is part of keys, and its location, which is not."""

    name: str
    """Value of the corpus's column `source`."""
    lang: str
    """ISO 639 code of the sentences."""
    digest: str
    """sha256 of the local content, or the Hub's `id@commit/config/split`."""
    columns: tuple[str, ...] = ()
    """Columns of sentences; if empty, from the known shapes."""
    label: str | None = None
    """NLI label column, if `columns` is given."""
    format: Format | None = None
    """Format of the files; None for a Hub table, whose file names determine it."""
    encoding: str | None = None
    """Encoding of the files that are not UTF-8."""
    files: Annotated[tuple[str, ...], NotInKey] = ()
    hub: Annotated[HubTable | None, NotInKey] = None
    limit: int | None = None
    """Maximum number of sentences that it adds to a corpus."""
    number: Annotated[int, AddedAs(0)] = 0
    """Number of earlier sources with the same name, language and limit, each of which has its own limit."""


def spec_of(name: str) -> SourceSpec | None:
    """Parse `<declared set>[/<split>]` or `<hub id>[@<revision>][/<split>]` as a source; None if it is neither."""
    dataset, _, split = name.partition("/")
    if dataset in DATASETS and "/" not in split:
        return SourceSpec(dataset=dataset, split=split or None)
    found = _HUB_SET.fullmatch(name)
    if found is None or ".." in name:
        return None
    return SourceSpec(dataset=found[1], revision=found[2], split=found[3])


def perhaps_meant(name: str) -> str:
    """Return a hint for a misspelt declared dataset: ` (did you mean 'stsb/test'?)`; empty if there is none."""
    dataset, slash, split = name.partition("/")
    near = nearest_name(dataset, DATASETS)
    if dataset in DATASETS or not near or (slash and split not in DATASETS[near].splits):
        return ""
    return f" (did you mean '{near}{slash}{split}'?)"


def resolve_source(spec: SourceSpec, mirror: str | None = None, cache: Path | None = None) -> ResolvedSource:
    """Resolve a source whose files have one format.

    Raises:
        SourceError: as for `resolve_sources`, or its files have several formats.
    """
    first, *others = resolve_sources(spec, mirror, cache)
    if others:
        kinds = " and ".join(str(source.format) for source in (first, *others))
        raise SourceError(
            f"{spec.path}: files of {kinds}, expected one format. Select one by a pattern, such as *.csv."
        )
    return first


def resolve_sources(
    spec: SourceSpec, mirror: str | None = None, cache: Path | None = None
) -> tuple[ResolvedSource, ...]:
    """Find a source and fingerprint it; each file format becomes a source, all with the same name.

    A `mirror` (folder or fsspec address) may contain `<name>/<split>.parquet`; `cache` replaces the Hub's cache.

    Raises:
        SourceError: it was found nowhere; the message lists the locations tried.
    """
    dataset = dataset_of(spec)
    with reachable(spec.path or mirror):
        found = _files(spec, mirror)
        originals = () if found or spec.path else _originals(spec, dataset, mirror)
    files = found or originals
    table = None if files else _hub_table(spec, dataset, mirror, cache)
    original = dataset.original_format if originals or (table and table.archive) else None
    groups: dict[Format | None, tuple[str, ...]] = {original: files}
    if files and not original:
        kinds = {path: spec.format or format_of(path) for path in files}
        groups = {kind: tuple(path for path in files if kinds[path] == kind) for kind in sorted({*kinds.values()})}
    named = spec.name or (spec.dataset or _name_of(str(spec.path), files)).removeprefix(EMBEDDED)
    return tuple(
        ResolvedSource(
            name=named,
            lang=spec.lang or dataset.lang,
            digest=table.address if table else joint_sha256(part for path in same for part in parts_of(path, kind)),
            columns=spec.columns or (() if original else dataset.texts),
            label=spec.label,
            format=kind,
            encoding=spec.encoding,
            files=same,
            hub=table,
            limit=spec.limit,
        )
        for kind, same in groups.items()
    )


def dataset_of(spec: SourceSpec) -> Dataset:
    """Return the declaration of a source's dataset; for an undeclared one, what its name says."""
    name, split = spec.dataset or "", spec.split or "train"
    hub_id = name if "/" in name else None
    return DATASETS.get(name) or Dataset(name=name, licence="", citation="", splits={split: split}, hub_id=hub_id)


def _files(spec: SourceSpec, mirror: str | None) -> tuple[str, ...]:
    """Return the files of a source; empty if only the Hub may have it."""
    if spec.path is not None:
        return listed(spec.path)
    name = str(spec.dataset)
    if name.startswith(EMBEDDED):
        return _embedded(name.removeprefix(EMBEDDED), spec.split)
    table = mirrored_table(spec, mirror)
    return () if table is None else (table,)


def mirrored_table(spec: SourceSpec, mirror: str | None) -> str | None:
    """Return the path of a dataset's table on a mirror; None if it has none.

    Raises:
        SourceError: a declared set has no such split.
    """
    name = _mirrored_name(spec)
    if mirror is None:
        return None
    path = f"{mirror.rstrip('/')}/{name}"
    fs, root = fsspec.url_to_fs(path)
    return path if fs.isfile(root) else None


def _mirrored_name(spec: SourceSpec) -> str:
    """Return the path of a dataset's table relative to a mirror; a non-default Hub configuration adds a folder."""
    dataset = dataset_of(spec)
    config = f"{spec.hub_config}/" if spec.hub_config and dataset.name not in DATASETS else ""
    return f"{dataset.folder or dataset.name}/{config}{_split(spec, dataset)}.parquet"


def _originals(spec: SourceSpec, dataset: Dataset, mirror: str | None) -> tuple[str, ...]:
    """Return the files of the original distribution on a mirror; empty if it has none, an error if some are missing."""
    if mirror is None:
        return ()
    fs, root = fsspec.url_to_fs(mirror)
    patterns = dataset.originals.get(_split(spec, dataset), ())
    found = [
        sorted(str(path) for path in fs.glob(f"{glob.escape(root.rstrip('/'))}/{pattern}")) for pattern in patterns
    ]
    several = [paths for paths in found if len(paths) > 1]
    if several:
        raise SourceError(f"{dataset.name}: {' and '.join(several[0][:2])} are the same file. Remove one of them.")
    paths = tuple(path for matches in found for path in matches)
    if paths and len(paths) < len(patterns):
        missing = [pattern for pattern, matches in zip(patterns, found, strict=True) if not matches]
        raise SourceError(
            f"{dataset.name}: {mirror} has only some of its files, no {', '.join(missing)}. Copy all of them."
        )
    return tuple(str(fs.unstrip_protocol(path)) for path in paths) if "://" in mirror else paths


def _embedded(name: str, split: str | None) -> tuple[str, ...]:
    folder = embedded_path(name, kinds=TEXTS)
    path = folder / f"{split or 'train'}.parquet"
    if not path.is_file():
        splits = ", ".join(sorted(file.stem for file in folder.glob("*.parquet")))
        raise SourceError(f"{EMBEDDED}{name} has no split {path.stem!r}, expected one of {splits}")
    return (str(path),)


def _hub_table(spec: SourceSpec, dataset: Dataset, mirror: str | None, cache: Path | None) -> HubTable:
    """Return a dataset's table or archive on the Hub, at the commit of its revision."""
    split = _split(spec, dataset)
    place = dataset if dataset.hub_id is not None else dataset.archive
    if place is None:
        tried = f"the mirror {mirror} has no {_mirrored_name(spec)}" if mirror else "no mirror is set"
        unknown = f"it is not one of the declared datasets {', '.join(DATASETS)}{perhaps_meant(dataset.name)}"
        reason = "the Hub has no copy" if dataset.name in DATASETS else unknown
        remedy = f"{dataset.remedy}, or {_REMEDY}" if dataset.remedy else _REMEDY
        raise SourceError(f"dataset {dataset.name!r} was not found: {tried}, and {reason}", remedy)
    repository = Repository(kind="dataset", name=str(place.hub_id), cache=cache)
    at = partial(HubTable, name=repository.name, cache=cache, commit=repository.pinned(spec.revision or place.revision))
    if isinstance(place, Dataset):
        return at(config=spec.hub_config or dataset.hub_config, split=dataset.splits[split])
    return at(config=dataset.name, split=split, archive=place.file, members=dataset.originals[split])


def _split(spec: SourceSpec, dataset: Dataset) -> str:
    split = spec.split or (next(iter(dataset.splits)) if len(dataset.splits) == 1 else "train")
    if split not in dataset.splits:
        near = nearest_name(split, dataset.splits)
        hint = f" (did you mean '{dataset.name}/{near}'?)" if near else ""
        splits = ", ".join(dataset.splits)
        raise SourceError(f"dataset {dataset.name!r} has no split {split!r}{hint}, expected one of {splits}")
    return split


def _name_of(path: str, files: tuple[str, ...]) -> str:
    """Return the stem of the only file, or the name of the folder of several files."""
    folder = path.partition("*")[0].rpartition("/")[0] if "*" in path else path
    name = folder.rstrip("/").rsplit("/", 1)[-1]
    return name if len(files) > 1 and name not in ("", ".", "..") else stem_of(files[0])


def stem_of(path: str) -> str:
    """Return the name of a file or folder up to its first dot."""
    return path.rstrip("/").rsplit("/", 1)[-1].split(".", 1)[0] or path


def source_bytes(source: ResolvedSource) -> int:
    """Return the size of a source's files in bytes; 0 for a Hub table, whose size is unknown."""
    sizes = [fsspec.url_to_fs(path) for path in source.files]
    return sum(int(fs.size(root) or 0) for fs, root in sizes)
