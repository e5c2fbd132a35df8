"""Data sets as a person names them on a command line."""

from __future__ import annotations

import difflib
import re
from typing import Final

from storage.datasets.registry import DATASETS
from storage.sources.sources import SourceSpec

_HUB_SET: Final = re.compile(r"(\w[\w.-]*/\w[\w.-]*)(?:@([\w.-]+))?(?:/([^/\\\x00]+))?")  # `./x` is a path


def spec_of(name: str) -> SourceSpec | None:
    """The source that `<declared set>[/<split>]` or `<hub id>[@<revision>][/<split>]` names; None if it is neither."""
    dataset, _, split = name.partition("/")
    if dataset in DATASETS and "/" not in split:
        return SourceSpec(dataset=dataset, split=split or None)
    found = _HUB_SET.fullmatch(name)
    if found is None or ".." in name:
        return None
    return SourceSpec(dataset=found[1], revision=found[2], split=found[3])


def perhaps_meant(name: str) -> str:
    """The declared set, and its split, for which a name may be a slip: ` (did you mean 'stsb/test'?)`; else nothing."""
    dataset, slash, split = name.partition("/")
    near = difflib.get_close_matches(dataset, DATASETS, n=1)
    if dataset in DATASETS or not near or (slash and split not in DATASETS[near[0]].splits):
        return ""
    return f" (did you mean '{near[0]}{slash}{split}'?)"
