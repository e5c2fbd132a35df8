"""The processor that a stage computes on."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tasks.site import Site


def device_of(site: Site) -> str:
    """The torch device of a site; `auto` takes a GPU if there is one."""
    import torch

    if site.device != "auto":
        return site.device
    return "cuda" if torch.cuda.is_available() else "cpu"


def cores() -> int:
    """CPU cores that this process may use; where the system keeps no affinity (macOS), all of them."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def settle_threads(site: Site) -> None:
    """Give torch as many threads as the site says, else one for each core."""
    import torch

    torch.set_num_threads(site.threads or cores())
