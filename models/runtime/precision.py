"""Resolve precision `auto` to bf16 or fp32 for a device, before artifact keys are computed.

bf16 is faster only where the device multiplies in it natively. Elsewhere libraries emulate it: on a CPU with AVX2, a
bf16 product takes seven times as long as one in fp32.
"""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Precision = Literal["auto", "fp32", "bf16"]
"""Precision in settings: `auto` is bf16 where the device computes in it natively, else fp32."""
Computed = Literal["fp32", "bf16"]
"""Resolved precision, as in artifact keys."""

T = TypeVar("T")

_UNITS: Final = {"avx512_bf16", "amx_bf16", "bf16"}  # names in /proc/cpuinfo: two of x86, one of ARM
_AMPERE: Final = (8, 0)  # the first compute capability with bf16
# Variables that limit instruction sets (first: of oneDNN, second: of torch's own kernels) → values without bf16.
_LIMITS: Final[Mapping[str, frozenset[str]]] = {
    "ONEDNN_MAX_CPU_ISA": frozenset(
        {"sse41", "avx", "avx2", "avx2_vnni", "avx2_vnni_2", "avx512_core", "avx512_core_vnni"}
    ),
    "ATEN_CPU_CAPABILITY": frozenset({"default", "avx2"}),
}


def settled(value: T, device: Callable[[], str]) -> T:
    """Replace every precision `auto` in a configuration by the device's precision; idempotent.

    Args:
        value: A pydantic model, or a tuple, list or mapping of such; anything else is returned unchanged.
        device: Returns the torch device; called only if a precision is `auto`.
    """
    if isinstance(value, BaseModel):
        return cast("T", _settled_model(value, device))
    inner: Any = value
    if isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        inner = type(value)(settled(part, device) for part in value)
    elif isinstance(value, dict):
        inner = {name: settled(part, device) for name, part in value.items()}
    return inner if inner != value else value


def computed(precision: Precision, device: str) -> Computed:
    """Resolve `auto` to the precision that a torch device (`cpu`, `cuda`, `cuda:1`) computes in."""
    if precision != "auto":
        return precision
    return "fp32" if emulates_bf16(device) else "bf16"


def explained(precision: Precision, device: str) -> str:
    """Return the precision with its reason, for the first lines of a run."""
    lacking, kind = emulates_bf16(device), "processor" if device == "cpu" else "device"
    if precision == "auto":
        return f"fp32 ({lacking})" if lacking else f"bf16 (this {kind} has bf16 units)"
    if precision == "bf16" and lacking:
        return f"bf16 (as set; {lacking}, so bf16 is emulated and much slower than fp32)"
    return f"{precision} (as set)"


def emulates_bf16(device: str) -> str:
    """Return why a torch device does not compute natively in bf16; empty if it does."""
    kind = device.partition(":")[0]
    if kind == "cpu":
        return _cpu_lacks(cpu_features(), os.environ)
    if kind == "cuda" and _cuda_has_units(device):
        return ""
    return "no bf16 units on this device"


@cache
def cpu_features() -> frozenset[str]:
    """Return the instruction sets of this processor as Linux lists them; empty on other systems."""
    listing = Path("/proc/cpuinfo")
    if not listing.exists():
        return frozenset()
    with listing.open(encoding="utf-8", errors="replace") as lines:
        found = (line.partition(":")[2] for line in lines if line.lower().startswith(("flags", "features")))
        return frozenset(next(found, "").split())


def _cpu_lacks(features: frozenset[str], environment: Mapping[str, str]) -> str:
    """Return why a CPU does not compute natively in bf16; empty if it does."""
    if not features & _UNITS:
        return "no bf16 units on this processor"
    for name, low in _LIMITS.items():
        if (limit := environment.get(name, "")).lower() in low and platform.machine().lower() in ("x86_64", "amd64"):
            return f"{name}={limit} disables the bf16 units of this processor"
    return ""


def _cuda_has_units(device: str) -> bool:
    import torch

    return torch.version.hip is not None or torch.cuda.get_device_capability(device) >= _AMPERE


def _settled_model(config: Any, device: Callable[[], str]) -> Any:  # noqa: ANN401  any pydantic model, and the same
    changes: dict[str, object] = {}
    for name, field in type(config).model_fields.items():
        before = getattr(config, name)
        # A translator's precision is of another type, and its backend resolves it.
        asks = field.annotation == Precision and before == "auto"
        after = computed("auto", device()) if asks else settled(before, device)
        if after is not before:
            changes[name] = after
    return config.model_copy(update=changes) if changes else config
