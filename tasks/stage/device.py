"""Choose the device, the number of threads and the arithmetic for a stage."""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bsl.models.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch

    from bsl.models.runtime.precision import Computed, Precision
    from bsl.tasks.stage.run_context import RunContext


class DeviceError(ModelError):
    """A device that this machine does not have."""


def device_of(site: RunContext) -> str:
    """Return the torch device of a run context; `auto` uses a GPU if there is one.

    Raises:
        DeviceError: torch does not find the requested device.
    """
    if site.device == "cpu":
        return "cpu"
    if site.device != "auto":
        return checked(site.device)
    if not _may_have_gpu():
        return "cpu"
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def precision_of(site: RunContext, configured: Precision) -> Computed:
    """Return the precision of a run context's device for a configured one, which may be `auto`."""
    from bsl.models.runtime.precision import computed  # pydantic, which would slow down the help of commands

    return configured if configured != "auto" else computed(configured, device_of(site))


def checked(device: str | torch.device) -> str:
    """Return the name of a torch device.

    Raises:
        DeviceError: torch does not find it.
    """
    import torch

    device = str(device)
    kind, _, number = device.partition(":")
    if kind == "cpu":
        return device
    accelerator = torch.accelerator.current_accelerator()
    count = torch.accelerator.device_count() if accelerator is not None and accelerator.type == kind else 0
    if int(number or 0) >= count:
        raise DeviceError(
            f"device {device} (--device, BSL_DEVICE): torch {torch.__version__} finds {count} devices of kind {kind}. "
            "Use --device cpu, or install a driver and a torch build for the device."
        )
    return device


def _may_have_gpu() -> bool:
    """Return whether a GPU driver is installed, without importing torch, which a fully cached run does not need."""
    if not sys.platform.startswith("linux") or Path("/dev/kfd").exists():  # AMD's
        return True
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def cores() -> int:
    """Return the number of CPU cores that this process may use: its affinity, or all where none is set (macOS).

    OMP_NUM_THREADS, which users and clusters set to share a machine, is an upper limit.
    """
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()  # the value of the outermost level
    return min(available, int(limit)) if limit.isdecimal() and int(limit) > 0 else available


@contextmanager
def computing(site: RunContext) -> Iterator[None]:
    """Compute inside the block with the run context's number of threads, by default one per core, and without TF32.

    Imports torch.
    """
    from bsl.models.runtime.torch_settings import ieee_products, torch_threads

    with torch_threads(site.threads or cores()), ieee_products():
        yield


def let_threads_sleep() -> None:
    """Let OpenMP threads that wait spin for microseconds only, then sleep; call this before torch is loaded.

    By default libgomp spins for milliseconds, which makes small steps ten times slower if another process wants the
    cores. This cannot be undone, so only processes that belong to this program call it.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "2000")
