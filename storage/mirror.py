"""A mirror: a folder that stands in for the Hub on machines that have none.

`<name>/<split>.parquet` for data sets, with a folder for a configuration of one's own choice, or their own files where
those are read, `models/<hub id>/` for models, and `mirror.json`, which keeps of every file where it came from and its
sha256. A file that is there already is checked against it and kept, so a broken run goes on.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq

from storage.declarations import DATASETS
from storage.digest import file_sha256
from storage.errors import SourceError
from storage.files import alone_in, whole
from storage.hub import model_files
from storage.mirror_record import RECORD, MirroredFile, check_commit, model_origin, name_in, read_record
from storage.readers.clusters import read_clusters
from storage.readers.columns import Columns
from storage.readers.report import ReadReport
from storage.readers.senteval import TRANSFER_SETS
from storage.readers.sts_files import parts_of
from storage.readers.table import format_of, read_table, readable_columns
from storage.reading import check_columns, local_files
from storage.scored import read_declared_pairs
from storage.set_names import spec_of
from storage.sources import SourceSpec, mirrored_place, pinned, resolve_source
from storage.transfer import read_transfer_table
from storage.weights import resolve_model

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

    from storage.declared.dataset import Dataset
    from storage.hub import HubTable
    from storage.sources import ResolvedSource
    from storage.weights import ResolvedModel

_HUB_ID: Final = re.compile(r"[\w.-]+(/[\w.-]+)?")
MODEL: Final = "model:"  # how a name says that it is a model's
Outcome = tuple[str, Literal["written", "kept"]]
"""A file or folder of a mirror, and what became of it."""


class Mirror:
    """A folder that is being filled.

    Args:
        folder: the mirror.
        source: another mirror, or a folder with the distributions' own files, that is read before the Hub.
        cache: where the Hub's files are kept; its own default if None.
    """

    def __init__(self, folder: Path, source: str | None = None, cache: Path | None = None) -> None:
        self.folder = folder
        self._source, self._cache = source, cache
        self._record = read_record(str(folder))

    def add(self, wanted: str | SourceSpec) -> Iterator[Outcome]:
        """Bring a data set or a model into the mirror.

        Args:
            wanted: a declared set `<name>` or `<name>/<split>`, another of the Hub `<hub id>[@<revision>][/<split>]`, a
                model `model:<hub id>[@<revision>]`, or a source of a recipe, which may name a configuration.

        Yields:
            File or folder, and whether it was written or there already.

        Raises:
            SourceError, AssetError: nobody has it, it is not what its declaration says, or a file that is there is not
                as it was written.
        """
        if isinstance(wanted, SourceSpec):
            yield from self._table(wanted)
        elif wanted.startswith(MODEL):
            hub_id, _, revision = wanted.removeprefix(MODEL).partition("@")
            if not _HUB_ID.fullmatch(hub_id) or ".." in hub_id:
                raise SourceError(f"{wanted!r}: expected {MODEL}<organisation>/<name> or {MODEL}<name>")
            yield self._model(hub_id, revision or None)
        else:
            for spec in _tables(wanted):
                yield from self._table(spec)

    def _table(self, spec: SourceSpec) -> Iterator[Outcome]:
        dataset, name = str(spec.dataset), mirrored_place(spec)
        declared, split = DATASETS.get(dataset), Path(name).stem
        if declared is not None and declared.folder is not None:
            raise SourceError(f"{dataset} shares the file of {declared.folder}; mirror that, or copy its own files")
        if self._kept(name, pinned(spec)):
            yield name, "kept"
            return
        source = resolve_source(spec, self._source, self._cache)
        table = _house_table(declared, split, source) if declared is not None else None
        if source.hub is not None and source.hub.archive is not None:
            yield from self._unpacked(source, source.hub)
            return
        if source.hub is None and source.format != "parquet":
            # As distributed: in another form it would have another key, and all that was made of it be made again.
            for part in (part for file in source.files for part in parts_of(file, source.format)):
                yield self._file(self._place(dataset, part), part, source.digest)
            return
        in_lists = declared is not None and declared.original_format == "clusters"
        with whole(self.folder / name) as path:
            if source.hub is None:
                _copy(source.files[0], path)
            elif in_lists and table is not None:
                table.write_parquet(path, compression="zstd")
            else:
                _write_hub(source, path, check=declared is not None)
        self._note(name, source.digest)
        yield name, "written"

    def _unpacked(self, source: ResolvedSource, table: HubTable) -> Iterator[Outcome]:
        """The files of an archive, where unpacking it into the mirror would put them."""
        (first, *_), member = local_files(source), table.members[0]
        folder = first.removesuffix(member)
        for name in (*table.members, *table.beside):
            yield self._file(name, f"{folder}{name}", source.digest)

    def _file(self, name: str, origin: str, digest: str) -> Outcome:
        if self._kept(name, digest):
            return name, "kept"
        with whole(self.folder / name) as path:
            _copy(origin, path)
        self._note(name, digest)
        return name, "written"

    def _place(self, dataset: str, origin: str) -> str:
        """Where a distribution's own file goes: to the place in which it was found, where it will be looked for."""
        found_in = name_in(self._source, origin) if self._source else None
        return found_in or f"{dataset}/{Path(origin).name}"

    def _model(self, hub_id: str, revision: str | None) -> Outcome:
        name = f"models/{hub_id}"
        if (self.folder / name).is_dir():
            resolve_model(hub_id, revision, str(self.folder))  # refused if it is of another revision
            for known in [file for file in self._record if file.startswith(f"{name}/")]:
                if not self._kept(known, self._record[known].origin):
                    raise SourceError(f"{self.folder / known} is missing; delete {self.folder / name} and run again")
            return name, "kept"
        found = resolve_model(hub_id, revision, self._source, self._cache)
        origin = (self._source and model_origin(self._source, hub_id)) or found.identity
        with whole(self.folder / name) as path:
            _copy_model(found, path)
        for file in sorted((self.folder / name).rglob("*")):
            if file.is_file():
                self._note(file.relative_to(self.folder).as_posix(), origin)
        return name, "written"

    def _kept(self, name: str, wanted: str) -> bool:
        """Whether a file is there, which must be as it was written, of the commit that `<hub id>@<commit>` names."""
        path = self.folder / name
        if not path.is_file():
            return False
        known = self._record.get(name)
        if known is not None and (found := file_sha256(path)) != known.sha256:
            raise SourceError(
                f"{path}: sha256 {found[:12]}…, {RECORD} says {known.sha256[:12]}…; delete the file and run again"
            )
        if known is not None:
            check_commit(str(path), known.origin, wanted)
        return True

    def _note(self, name: str, origin: str) -> None:
        entry = MirroredFile(origin=origin, sha256=file_sha256(self.folder / name))
        with alone_in(self.folder):  # who fills the mirror beside this process has entries of its own there
            self._record = {**read_record(str(self.folder)), name: entry}
            text = json.dumps({file: entry.model_dump() for file, entry in sorted(self._record.items())}, indent=1)
            with whole(self.folder / RECORD) as path:
                path.write_text(text + "\n", encoding="utf-8")


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


def _house_table(declared: Dataset, split: str, source: ResolvedSource) -> pl.DataFrame | None:
    """A declared set in the house's own columns; None where a mirror keeps it as distributed.

    Raises:
        SourceError: it is not the papers' own, which is said here and not on the machine that scores it.
    """
    if declared.name in TRANSFER_SETS:
        read_transfer_table(declared.name, split, source)
    if declared.original_format == "clusters":
        return read_clusters(local_files(source)[0])
    return read_declared_pairs(declared.name, split, source) if declared.score_range else None


def _copy(origin: str, path: Path) -> None:
    """A file of a source, which may be an object store's."""
    fs, place = fsspec.url_to_fs(origin)
    fs.get_file(place, str(path))


def _write_hub(source: ResolvedSource, path: Path, *, check: bool) -> None:
    """All rows and columns of a Hub's table, as one Parquet file; those of a declared set must be as it is declared."""
    files = local_files(source)
    if len(files) == 1 and format_of(files[0]) == "parquet":
        shutil.copyfile(files[0], path)
        return
    report, writer = ReadReport(source.digest), None
    as_they_are = all(format_of(file) == "parquet" for file in files)
    texts = check_columns(source) if check else source.columns
    for rows in _batches(files) if as_they_are else _whole_rows(files, texts, report):
        writer = writer or pq.ParquetWriter(path, rows.schema, compression="zstd")
        writer.write_table(rows.cast(writer.schema))
    if not as_they_are:
        report.check(max_bad_share=0.0)
    if writer is None:
        raise SourceError(f"{source.digest} holds no row, expected some; give another split")
    writer.close()


def _batches(files: Sequence[str]) -> Iterator[pa.Table]:
    for file in files:
        with pq.ParquetFile(file) as table:
            for batch in table.iter_batches():
                yield pa.Table.from_batches([batch])


def _whole_rows(files: Sequence[str], texts: tuple[str, ...], report: ReadReport) -> Iterator[pa.Table]:
    for file in files:
        kind = format_of(file)
        others = tuple(name for name in readable_columns(file, kind, report) if name not in texts)
        for frame in read_table(file, kind, Columns(texts, others), report):
            yield frame.to_arrow()


def _copy_model(model: ResolvedModel, target: Path) -> None:
    """A model's own files; the Hub's cache may hold other forms of it beside them."""
    folder = model.folder
    names = model_files(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    for name in names if model.hub is not None else ():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / name, target / name)
    if model.hub is None:
        shutil.copytree(folder, target)
