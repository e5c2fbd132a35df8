"""Which files of a data set's repository hold a split: as its README says, else by the words in their names.

As the Hub's own client reads a README: a configuration's `data_files` are patterns inside its `data_dir`, and one that
has a `data_dir` alone is that folder, whose splits the names of its files tell.
"""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from storage.errors import HubError
from storage.readers.table import FORMATS, is_readable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_SPLITS: Final = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "val", "dev"),
    "test": ("test", "testing", "eval", "evaluation"),
}
"""Split → words in the names of its files, where a repository says nothing else."""
_PLACES: Final = ("data_files", "data_dir")  # how a configuration says where its files are
_SPECIAL: Final = re.compile(r"(\*\*/|\*\*|\*|\?|\[!?\]?[^\]]*\])")
_WILD: Final = {"**/": r"(?:.*/)?", "**": r".*", "*": r"[^/]*", "?": r"[^/]"}


@dataclass(frozen=True)
class Wanted:
    """What is looked for in a repository.

    Attributes:
        address: What messages call it.
        config: The configuration; the usual one if None.
        split: The split, by the Hub's name, or several joined by `+`.
    """

    address: str
    config: str | None
    split: str


def split_files(wanted: Wanted, names: Iterable[str], configs: Sequence[dict[str, Any]] = ()) -> tuple[str, ...]:
    """The files of a repository that hold a split, in order.

    Args:
        wanted: Which configuration and split.
        names: All files of the repository.
        configs: As its README names them.

    Raises:
        HubError: there is no such configuration or split, or it is in no format that is read here.
    """
    data = [name for name in sorted(names) if not name.startswith(".") and PurePosixPath(name).name != "README.md"]
    declared = [entry for entry in configs if any(entry.get(place) for place in _PLACES)]
    splits = _of_config(_meant(wanted, declared), data) if declared else _by_names(data, wanted.config)
    parts = [splits.get(split, ()) for split in wanted.split.split("+")]
    found = [name for part in parts for name in part]
    if not all(parts):
        raise HubError(*_lacking(wanted, [name for name, files in splits.items() if files]))
    if unread := [name for name in found if not is_readable(name)]:
        known = ", ".join(suffix for known in FORMATS.values() for suffix in known.suffixes)
        raise HubError(
            f"{wanted.address}: {unread[0]} is in no format that is read here ({known})",
            "convert it and give its `path`",
        )
    return tuple(found)


def _lacking(wanted: Wanted, held: Sequence[str]) -> tuple[str, str]:
    if held:
        return f"{wanted.address}: the Hub's repository has no such split, it has {', '.join(held)}", "correct `split`"
    if wanted.config:
        return (
            f"{wanted.address}: the Hub's repository has no file of the configuration {wanted.config!r}",
            "correct or leave out `hub_config`",
        )
    return f"{wanted.address}: the Hub's repository has no file of data", "fetch what it has and give its `path`"


def _meant(wanted: Wanted, configs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The configuration that is asked for, else the usual or the only one."""
    known = [str(entry.get("config_name", "default")) for entry in configs]
    usual = [name for entry, name in zip(configs, known, strict=True) if entry.get("default") or name == "default"]
    name = wanted.config or (usual[0] if usual else known[0] if len(known) == 1 else None)
    if name not in known:
        raise HubError(
            f"{wanted.address}: the Hub's repository has the configurations {', '.join(known)}, expected one of them",
            "set `hub_config`",
        )
    return configs[known.index(name)]


def _of_config(entry: Mapping[str, Any], names: Sequence[str]) -> dict[str, list[str]]:
    """Split → files of a configuration."""
    folder = PurePosixPath(str(entry.get("data_dir") or "."))
    inside = {
        PurePosixPath(name).relative_to(folder).as_posix(): name
        for name in names
        if PurePosixPath(name).is_relative_to(folder)
    }
    patterns = entry.get("data_files")
    splits = _by_patterns(patterns, list(inside)) if patterns else _by_names(list(inside), None)
    return {split: [inside[name] for name in files] for split, files in splits.items()}


def _by_patterns(
    patterns: str | list[str] | list[dict[str, Any]] | dict[str, Any], names: Sequence[str]
) -> dict[str, list[str]]:
    """Split → files, as `data_files` may be written: patterns by split, or patterns alone, which are `train`."""
    if isinstance(patterns, dict):
        by_split = patterns
    elif isinstance(patterns, list) and isinstance(patterns[0], dict):
        by_split = {entry.get("split", "train"): entry["path"] for entry in patterns if isinstance(entry, dict)}
    else:
        by_split = {"train": patterns}
    return {str(split): list(_matching(own, names)) for split, own in by_split.items()}


def _matching(patterns: str | list[str], names: Sequence[str]) -> Iterator[str]:
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        parts = _SPECIAL.split(pattern.removeprefix("./"))
        expression = re.compile("".join(map(_translated, parts)))
        yield from (name for name in names if expression.fullmatch(name))


def _translated(part: str) -> str:
    """A part of a pattern as a regular expression."""
    if part.startswith("[") and _SPECIAL.fullmatch(part):
        return f"(?!/){fnmatch.translate(part)[4:-3]}"  # without what holds a whole expression
    return _WILD.get(part, re.escape(part))


def _by_names(names: Sequence[str], config: str | None) -> dict[str, list[str]]:
    data = [name for name in names if is_readable(name) and (config is None or _has_word(name, config))]
    found = {
        split: [name for name in data if any(_has_word(name, w) for w in words)] for split, words in _SPLITS.items()
    }
    return found if any(found.values()) else {"train": data}


def _has_word(name: str, word: str) -> bool:
    return re.search(rf"(?<![a-z0-9]){re.escape(word.lower())}(?![a-z0-9])", name.lower()) is not None
