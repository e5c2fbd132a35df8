"""Data sets of the Hub by `datasets.load_dataset`, as memory-mapped Arrow files in its own cache, or out of an archive.

Design choices
- A prepared configuration at a commit is complete or absent, so it is looked for first and read without asking the Hub,
  whichever program prepared it. Raw files are fetched and checked before `datasets` reads them.
- No code of a repository runs: only the formats below are read.
- An archive is fetched once, and what is wanted of it unpacked beside it. A file is written under the name that it was
  asked for by, never under the archive's, so no archive can write elsewhere.
"""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

from storage.artifacts.keys import NotInKey
from storage.errors import HubError, SourceError
from storage.filesystem.atomic import whole
from storage.hub.faults import cause, retried
from storage.hub.repositories import COMMIT, Listing, ask, fetch, listing, snapshot
from storage.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from datasets import DatasetBuilder

_FORMATS: Final = ("parquet", "json", "csv", "text", "arrow")  # of datasets' own modules
_AS_WRITTEN: Final = {"na_filter": False}  # of CSV: pandas would drop texts such as `None` and `N/A`
_MARK: Final = "na_filter=False"
_AT: Final = "hf://datasets/"
T = TypeVar("T")


class HubTable(Record):
    """One split of a data set on the Hub."""

    hub_id: str
    """`organisation/name`."""
    config: str | None = None
    """Configuration, where the set has several."""
    split: str = "train"
    """Split, by the Hub's name; several are joined by `+`."""
    revision: str | None = None
    """Commit, tag or branch; the newest commit if None."""
    archive: str | None = None
    """File of the repository that the split's own files are packed in."""
    members: tuple[str, ...] = ()
    """Those files, by their paths in the archive."""
    beside: tuple[str, ...] = ()
    """Files of the archive that readers look for beside them."""
    home: Annotated[Path | None, NotInKey] = None
    """Folder in the place of HF_HOME; HF_HOME if None."""

    @property
    def address(self) -> str:
        """Name in messages and keys."""
        parts = (f"{self.hub_id}@{self.revision}", self.archive, self.config, self.split)
        return "/".join(part for part in parts if part)

    @property
    def packed(self) -> tuple[str, ...]:
        """All files that are needed of the archive."""
        return (*self.members, *self.beside)

    @property
    def cache(self) -> Path | None:
        """The Hub's cache in `home`."""
        return self.home / "hub" if self.home else None


def pin_table(table: HubTable) -> HubTable:
    """Return the table at the commit that its revision means now; a full commit needs no Hub.

    Raises:
        SourceError: the Hub has no such data set, or does not answer and nothing is in the cache.
    """
    if table.revision and COMMIT.fullmatch(table.revision):
        return table
    commit = listing("dataset", table.hub_id, table.revision, table.cache).commit
    return table.model_copy(update={"revision": commit})


def table_files(table: HubTable) -> tuple[str, ...]:
    """Return local files with a table's rows, in order; fetched and prepared if they are not in the cache.

    Raises:
        SourceError: the Hub has no such commit, configuration or split, gives it in no format that is read here, or
            does not give it.
    """
    if table.archive is not None:
        return tuple(map(str, _unpacked_files(table)[: len(table.members)]))
    return _arrow_files(table, _prepared(table) or _prepare(table))


def check_table(table: HubTable) -> bool:
    """Return whether a table is in the cache; if not, the Hub has said that it has the split."""
    if table.archive is not None:
        return _is_here(table)
    if (folder := _prepared(table)) is not None:
        _arrow_files(table, folder)
        return True
    builder, _ = _builder(table)
    _check_splits(table, list(builder.config.data_files))
    return False


def _prepare(table: HubTable) -> Path:
    """Fetch a configuration's raw files, check them, and write them as Arrow."""
    builder, listed = _builder(table)
    splits = builder.config.data_files
    _check_splits(table, list(splits))
    marker = f"{table.hub_id}@{listed.commit}/"
    paths = [str(file).removeprefix(_AT).removeprefix(marker) for files in splits.values() for file in files]
    fetch("dataset", table.hub_id, listed, [path for path in dict.fromkeys(paths) if path in listed.files])
    retried(f"{table.hub_id}@{listed.commit[:12]}", lambda: _explained(table, builder.download_and_prepare))
    return Path(builder.cache_dir)


def _builder(table: HubTable) -> tuple[DatasetBuilder, Listing]:
    """The builder of a configuration at the table's commit, which has read the repository's README and no data.

    Raises:
        HubError: no such configuration, or files of another format or none.
    """
    # Asked even if known: this fails in a second where the Hub is out of reach, and clients of `datasets` in minutes.
    listed = ask("dataset", table.hub_id, str(table.revision))
    address = f"{table.hub_id}@{listed.commit[:12]}"
    # First, for `datasets` does not say why a refused repository was refused.
    fetch("dataset", table.hub_id, listed, [name for name in ("README.md",) if name in listed.files])
    builder = retried(address, lambda: _explained(table, lambda: _load(table, listed.commit)))
    if builder.name not in _FORMATS:
        raise HubError(
            f"{table.address}: its files are of the kind {builder.name}, expected one of {', '.join(_FORMATS)}",
            "convert them and give their `path`",
        )
    if builder.name == "csv":
        builder = retried(address, lambda: _explained(table, lambda: _load(table, listed.commit, **_AS_WRITTEN)))
    return builder, listed


def _load(table: HubTable, commit: str, **settings: object) -> DatasetBuilder:
    import datasets  # half a second, and most runs never need it

    datasets.disable_progress_bars()
    datasets.logging.set_verbosity_error()
    return datasets.load_dataset_builder(
        table.hub_id, table.config, revision=commit, cache_dir=_cache(table), **settings
    )


def _explained(table: HubTable, call: Callable[[], T]) -> T:
    """What a call of `datasets` gives.

    Raises:
        HubError: a repository that `datasets` cannot read as asked. Faults of the Hub pass.
    """
    from datasets.exceptions import DatasetGenerationError, DatasetsError

    try:
        return call()
    except (ValueError, DatasetsError, FileNotFoundError) as error:
        if type(inner := cause(error)).__module__.partition(".")[0] in {"huggingface_hub", "httpx", "httpx2"}:
            raise
        reason = " ".join((str(inner).strip() or type(inner).__name__).splitlines()[:2])
        if isinstance(error, DatasetGenerationError):
            remedy = "see its page on the Hub, or give its files by `path`"
        else:
            remedy = "set `hub_config`" if "onfig" in reason else "fetch what it has and give its `path`"
        raise HubError(f"{table.address}: datasets cannot read the repository ({reason:.300})", remedy) from error


def _check_splits(table: HubTable, known: Sequence[str]) -> None:
    if lacking := [split for split in table.split.split("+") if split not in known]:
        raise HubError(
            f"{table.address}: the Hub's repository has no such split ({lacking[0]}), it has {', '.join(known)}",
            "correct `split`",
        )


def _prepared(table: HubTable) -> Path | None:
    """The folder in which `datasets` has prepared a configuration at the table's commit; None if not or not clear."""
    from datasets import config
    from datasets.naming import camelcase_to_snakecase

    owner, _, name = table.hub_id.rpartition("/")
    sets = Path(_cache(table) or config.HF_DATASETS_CACHE) / "___".join(
        filter(None, (owner, camelcase_to_snakecase(name)))
    )
    found = [path.parent for path in sets.glob(f"*/*/{table.revision}/dataset_info.json") if _fits(table, path)]
    return found[0] if len(found) == 1 else None


def _fits(table: HubTable, path: Path) -> bool:
    """Whether a folder has the table's configuration, prepared as it is here: CSV with `_AS_WRITTEN`."""
    from datasets import DatasetInfo

    try:
        info = DatasetInfo.from_directory(str(path.parent))
    except (ValueError, TypeError, LookupError, AttributeError):
        return False  # damaged, or of a version that says less; `datasets` prepares it again
    as_read = f"{info.config_name}-{_MARK}" if info.builder_name == "csv" else info.config_name
    return info.config_name == (table.config or info.config_name) and path.parents[2].name == as_read


def _arrow_files(table: HubTable, folder: Path) -> tuple[str, ...]:
    """The Arrow files of a prepared split."""
    from datasets import DatasetInfo
    from datasets.naming import filenames_for_dataset_split

    info = DatasetInfo.from_directory(str(folder))
    _check_splits(table, list(info.splits))
    files: list[str] = []
    for split in table.split.split("+"):
        shards = info.splits[split].shard_lengths
        files += filenames_for_dataset_split(str(folder), info.dataset_name, split, "arrow", shards)
    return tuple(files)


def _cache(table: HubTable) -> str | None:
    return str(table.home / "datasets") if table.home else None


def _unpacked_files(table: HubTable) -> tuple[Path, ...]:
    """Local copies of the files that a table needs of its archive; fetched and unpacked if they are not here."""
    listed = listing("dataset", table.hub_id, table.revision, table.cache)
    archive, address = str(table.archive), f"{table.hub_id}@{listed.commit[:12]}: {table.archive}"
    if archive not in listed.files:
        raise HubError(f"{address}: the repository has no such file", "give the set's own files by a mirror")
    folder = _folder_of_unpacked(table, listed.commit)
    lacking = [name for name in table.packed if not (folder / name).is_file()]
    if lacking:
        _unpack(fetch("dataset", table.hub_id, listed, [archive], table.cache) / archive, lacking, folder, address)
    return tuple(folder / name for name in table.packed)


def _is_here(table: HubTable) -> bool:
    """Whether a table's archive or its files are here; if not, the Hub has said that it has the repository."""
    commit = listing("dataset", table.hub_id, table.revision, table.cache).commit
    packed = snapshot("dataset", table.hub_id, commit, table.cache) / str(table.archive)
    folder = _folder_of_unpacked(table, commit)
    return packed.exists() or all((folder / name).is_file() for name in table.packed)


def _folder_of_unpacked(table: HubTable, commit: str) -> Path:
    repository = snapshot("dataset", table.hub_id, commit, table.cache).parents[1]
    return repository / ".bsl" / commit / str(table.archive)


def _unpack(packed: Path, wanted: Sequence[str], folder: Path, address: str) -> None:
    try:
        with tarfile.open(packed) as tar:
            members = {member.name.removeprefix("./"): member for member in tar if member.isfile()}
            for name in wanted:
                # Some pack the folder, some what is in it.
                held = [member for known, member in members.items() if f"/{known}".endswith(f"/{name}")]
                content = tar.extractfile(held[0]) if held else None
                if content is None:
                    raise SourceError(f"{address} holds {len(members)} files but no {name}", "give it by a mirror")
                with content, whole(folder / name) as path, path.open("wb") as file:
                    shutil.copyfileobj(content, file)
    except (tarfile.TarError, EOFError) as error:
        reason = str(error).splitlines()[0]
        raise HubError(f"{address} cannot be unpacked ({reason})", f"delete {packed} and run again") from error
