"""The processor that a stage computes on."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from models.errors import ModelError

if TYPE_CHECKING:
    from tasks.stage.run_context import RunContext


class DeviceError(ModelError):
    """A device that this machine does not have."""


def device_of(site: RunContext) -> str:
    """The torch device of a site; `auto` takes a GPU if there is one.

    Raises:
        DeviceError: the site names one that torch does not find.
    """
    if site.device == "cpu":
        return "cpu"
    if site.device != "auto":
        return _found(site.device)
    if not _may_have_gpu():
        return "cpu"
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _found(device: str) -> str:
    import torch

    kind, _, number = device.partition(":")
    there = torch.accelerator.current_accelerator()
    count = torch.accelerator.device_count() if there is not None and there.type == kind else 0
    if int(number or 0) >= count:
        raise DeviceError(
            f"device {device} is asked for (--device, BSL_DEVICE), but torch {torch.__version__} finds {count} of kind "
            f"{kind}; use --device cpu, or install a build of torch and a driver for it"
        )
    return device


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
    """CPU cores that this process may use: those of its affinity, or all where the system keeps none (macOS).

    No more than OMP_NUM_THREADS, by which people and clusters share a machine out.
    """
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()  # of the outermost level
    return min(own, int(asked)) if asked.isdecimal() and int(asked) > 0 else own


def limit_threads(site: RunContext) -> None:
    """Give torch as many threads as the site says, else one for each core."""
    import torch

    torch.set_num_threads(site.threads or cores())
