"""Read Hub datasets by `datasets.load_dataset`, as memory-mapped Arrow files in its cache, or from an archive.

Design choices
- A prepared configuration at a commit is complete or absent, so the cache is searched first, without a request to the
  Hub. Raw files are fetched and checked before `datasets` reads them.
- No code of a repository runs: only the formats below are read.
- An archive is fetched and unpacked once, into the same cache: only files whose names lead into the folder.
"""

from __future__ import annotations

import logging
import tarfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from bsl.storage.errors import HubError, SourceError
from bsl.storage.filesystem.atomic import atomic_write
from bsl.storage.filesystem.names import is_inside
from bsl.storage.filesystem.os_errors import first_line, message_of, not_written, translated
from bsl.storage.hub.faults import cause, retried
from bsl.storage.hub.repositories import HubCommit
from bsl.storage.process_setting import ProcessSetting
from bsl.storage.readers.unpacked import MAX_RATIO, is_bomb

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from datasets import DatasetBuilder

_FORMATS: Final = ("parquet", "json", "csv", "text", "arrow")  # of datasets' own modules
_AS_WRITTEN: Final = {"na_filter": False}  # for CSV: pandas would drop texts such as `None` and `N/A`
_MARK: Final = "na_filter=False"
_AT: Final = "hf://datasets/"
T = TypeVar("T")


class HubTable(HubCommit):
    """One split of a dataset on the Hub at a commit."""

    kind: Literal["dataset"] = "dataset"
    config: str | None = None
    """Configuration, if the set has several."""
    split: str = "train"
    """Split, by the Hub's name; several are joined by `+`."""
    archive: str | None = None
    """Archive in the repository with the split's original files."""
    members: tuple[str, ...] = ()
    """The split's files, by their paths in the archive or below its only folder."""

    @property
    def address(self) -> str:
        """Name in messages and keys."""
        parts = (f"{self.name}@{self.commit}", self.archive, self.config, self.split)
        return "/".join(part for part in parts if part)


def table_files(table: HubTable) -> tuple[str, ...]:
    """Return local files with a table's rows, in order; they are fetched and prepared if the cache lacks them.

    Raises:
        SourceError: the Hub has no such commit, configuration or split, or only in an unsupported format, or does not
            deliver it.
    """
    if table.archive is not None:
        return _unpacked_files(table)
    return _arrow_files(table, _prepared(table) or _prepare(table))


def check_table(table: HubTable) -> bool:
    """Return whether a table is in the cache; if not, check that the Hub has the split."""
    if table.archive is not None:
        table.files()
        return not table.lacking([table.archive]) or _unpacked(table).is_dir()
    if (folder := _prepared(table)) is not None:
        _arrow_files(table, folder)
        return True
    builder = _builder(table)
    _check_splits(table, list(builder.config.data_files))
    return False


def _prepare(table: HubTable) -> Path:
    """Fetch a configuration's raw files, check them, and convert them to Arrow."""
    builder, raw = _builder(table), _raw(table)
    splits = builder.config.data_files
    _check_splits(table, list(splits))
    marker = f"{table.name}@{table.commit}/"
    paths = [str(file).removeprefix(_AT).removeprefix(marker) for files in splits.values() for file in files]
    listed = raw.files()
    raw.fetch(dict.fromkeys(path for path in paths if path in listed))
    _asked(table, builder.download_and_prepare)
    return Path(builder.cache_dir)


def _builder(table: HubTable) -> DatasetBuilder:
    """Return the builder of a configuration at the table's commit, after reading the README but no data."""
    # Ask even if the listing is cached: without a Hub this fails within a second, `datasets` only after minutes.
    _, listed = _raw(table).ask(table.commit)
    # Fetch first, because `datasets` does not report why a repository was refused.
    _raw(table).fetch(name for name in ("README.md",) if name in listed)
    builder = _asked(table, partial(_load, table))
    if builder.name not in _FORMATS:
        raise HubError(
            f"{table.address}: its files have the format {builder.name}, expected one of {', '.join(_FORMATS)}",
            "convert them and set `path`",
        )
    if builder.name == "csv":
        builder = _asked(table, partial(_load, table, **_AS_WRITTEN))
    return builder


def _load(table: HubTable, **settings: object) -> DatasetBuilder:
    import datasets  # takes half a second, and most runs do not need it
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    try:
        return datasets.load_dataset_builder(
            table.name, table.config, revision=table.commit, cache_dir=_cache(table), **settings
        )
    except datasets.exceptions.DatasetNotFoundError:  # without the Hub's answer, such as a gate; ask for it
        for name in [*table.files()][:1]:
            get_hf_file_metadata(hf_hub_url(table.name, name, repo_type="dataset", revision=table.commit))
        raise


def _asked(table: HubTable, call: Callable[[], T]) -> T:
    """Return the result of a call of `datasets`, retried as requests to the Hub are, with its own errors explained."""
    with _SHOWN.set_to((logging.ERROR, False)):
        return retried(f"{table.name}@{table.commit[:12]}", "dataset", lambda: _explained(table, call))


def _explained(table: HubTable, call: Callable[[], T]) -> T:
    with translated(partial(_fault, table), ()):
        return call()


def _fault(table: HubTable, error: Exception) -> HubError | None:
    """Return an error of `datasets` with a remedy; a damaged file raises the errors of its reader, such as EOFError."""
    from datasets.exceptions import DatasetGenerationError

    inner = cause(error)
    of_transport = type(inner).__module__.partition(".")[0] in {"huggingface_hub", "httpx", "httpx2"}
    if of_transport or isinstance(inner, ConnectionError | TimeoutError) or not_written(inner):
        return None
    reason = " ".join(message_of(inner).splitlines()[:2])
    if isinstance(error, DatasetGenerationError):
        remedy = "see its page on the Hub, or download its files and set `path`"
    else:
        remedy = "set `hub_config`" if "onfig" in reason else "download its files and set `path`"
    return HubError(f"{table.address}: datasets cannot read the repository ({reason:.300})", remedy)


def _shown() -> tuple[int, bool]:
    """Return the verbosity of `datasets`, and whether it shows progress bars."""
    import datasets

    return datasets.logging.get_verbosity(), not datasets.are_progress_bars_disabled()


def _show(values: tuple[int, bool]) -> None:
    import datasets

    verbosity, bars = values
    datasets.logging.set_verbosity(verbosity)
    if bars == datasets.are_progress_bars_disabled():  # else the call may warn that a variable has priority
        (datasets.enable_progress_bars if bars else datasets.disable_progress_bars)()


_SHOWN: Final = ProcessSetting(_shown, _show)


def _check_splits(table: HubTable, known: Sequence[str]) -> None:
    if missing := [split for split in table.split.split("+") if split not in known]:
        raise HubError(
            f"{table.address}: the Hub's repository has no split {missing[0]!r}, expected one of {', '.join(known)}",
            "correct `split`",
        )


def _prepared(table: HubTable) -> Path | None:
    """Return the folder in which `datasets` prepared a configuration at the table's commit; None if not exactly one."""
    from datasets import config
    from datasets.naming import camelcase_to_snakecase

    owner, _, name = table.name.rpartition("/")
    sets = Path(_cache(table) or config.HF_DATASETS_CACHE) / "___".join(
        filter(None, (owner, camelcase_to_snakecase(name)))
    )
    found = [path.parent for path in sets.glob(f"*/*/{table.commit}/dataset_info.json") if _fits(table, path)]
    return found[0] if len(found) == 1 else None


def _fits(table: HubTable, path: Path) -> bool:
    """Return whether a folder has the table's configuration, prepared as here: CSV with `_AS_WRITTEN`."""
    from datasets import DatasetInfo

    try:
        info = DatasetInfo.from_directory(str(path.parent))
    except (ValueError, TypeError, LookupError, AttributeError):
        return False  # damaged, or written by a version with fewer fields; `datasets` prepares it again
    as_read = f"{info.config_name}-{_MARK}" if info.builder_name == "csv" else info.config_name
    return info.config_name == (table.config or info.config_name) and path.parents[2].name == as_read


def _arrow_files(table: HubTable, folder: Path) -> tuple[str, ...]:
    """Return the Arrow files of a prepared split."""
    from datasets import DatasetInfo
    from datasets.naming import filenames_for_dataset_split

    info = DatasetInfo.from_directory(str(folder))
    _check_splits(table, list(info.splits))
    files: list[str] = []
    for split in table.split.split("+"):
        shards = info.splits[split].shard_lengths
        files += filenames_for_dataset_split(str(folder), info.dataset_name, split, "arrow", shards)
    return tuple(files)


def _raw(table: HubTable) -> HubCommit:
    """Return the raw files of a table's repository: `datasets` reads them from HF_HUB_CACHE, not `table.cache`."""
    return HubCommit(kind="dataset", name=table.name, commit=table.commit)


def _cache(table: HubTable) -> str | None:
    """Return the folder of prepared sets, which is next to the Hub's cache, as in HF_HOME."""
    return str(table.cache.parent / "datasets") if table.cache else None


def _unpacked_files(table: HubTable) -> tuple[str, ...]:
    """Return local copies of a table's files from its archive; fetch and unpack it if needed."""
    address = f"{table.name}@{table.commit[:12]}: {table.archive}"
    if table.archive not in table.files():
        raise HubError(f"{address}: the repository has no such file", "put the set's original files into the mirror")
    if not _unpacked(table).is_dir():
        table.fetch([str(table.archive)])
        _unpack(_archive(table), _unpacked(table), address)
    found = [next(_unpacked(table).rglob(name), None) for name in table.members]
    if None in found:
        missing = table.members[found.index(None)]
        raise SourceError(f"{address} contains no {missing}", "put it into the mirror")
    return tuple(map(str, found))


def _archive(table: HubTable) -> Path:
    return table.path / str(table.archive)


def _unpacked(table: HubTable) -> Path:
    """Return the folder with the files of a table's archive, in the repository's folder of the cache."""
    return table.folder / ".bsl" / table.commit / f"all-{table.archive}"


def _unpack(packed: Path, folder: Path, address: str) -> None:
    try:
        with atomic_write(folder, keep_existing=True) as unpacked, tarfile.open(packed) as tar:
            tar.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.4 and later
            unpacked.mkdir()  # there may be no file to unpack
            tar.extractall(unpacked, _files_of(tar, packed, address))
    except (tarfile.TarError, EOFError) as error:
        raise HubError(
            f"{address} cannot be unpacked ({first_line(error)})", f"delete {packed} and run again"
        ) from error


def _files_of(tar: tarfile.TarFile, packed: Path, address: str) -> list[tarfile.TarInfo]:
    """Return the regular files of an archive with names inside it; raise an error before their content is unpacked."""
    files, size = [], 0
    for one in tar:
        size += one.size
        if is_bomb(size, packed.stat().st_size):
            raise HubError(
                f"{address} unpacks to more than {MAX_RATIO} times its size (found {size:,} bytes from "
                f"{packed.stat().st_size:,})",
                "put the set's original files into the mirror",
            )
        if one.isfile() and is_inside(one.name.removeprefix("./")):
            files.append(one)
    return files
