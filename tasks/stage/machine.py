"""The processor that a stage computes on."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tasks.site import Site


def device_of(site: Site) -> str:
    """The torch device of a site; `auto` takes a GPU if there is one."""
    if site.device != "auto":
        return site.device
    if not _may_have_gpu():
        return "cpu"
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _may_have_gpu() -> bool:
    """Whether there is a driver that torch would call: a run that finds all stages cached need not import it to ask."""
    if not sys.platform.startswith("linux") or Path("/dev/kfd").exists():  # AMD's
        return True
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def cores() -> int:
    """CPU cores that this process may use; where the system keeps no affinity (macOS), all of them."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def settle_threads(site: Site) -> None:
    """Give torch as many threads as the site says, else one for each core."""
    import torch

    torch.set_num_threads(site.threads or cores())
