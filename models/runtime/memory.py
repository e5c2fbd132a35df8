"""Memory that this process may use: the machine's, or less in a container."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_LIMITS: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Files with the limit of a container's control group, version 2 and 1."""


def usable_bytes(limits: Sequence[Path] = _LIMITS) -> int:
    """Return the machine's memory in bytes, or the container's limit if that is less.

    Args:
        limits: Files with a limit in bytes, or `max` for none.
    """
    found = [file.read_text(encoding="ascii").strip() for file in limits if file.is_file()]
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([machine, *(int(limit) for limit in found if limit.isdigit())])
