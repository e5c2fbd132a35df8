"""Which precision a device computes in: `auto` becomes bf16 or fp32 before anything is keyed.

bf16 pays only where the device multiplies in it natively. Elsewhere libraries emulate it: on a CPU with AVX2 a product
in bf16 takes seven times as long as one in fp32.
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
"""What a setting may say: `auto` is bf16 where the device computes in it natively, else fp32."""
Computed = Literal["fp32", "bf16"]
"""What a device computes in, and what artifact keys hold."""

T = TypeVar("T")

_UNITS: Final = {"avx512_bf16", "amx_bf16", "bf16"}  # as /proc/cpuinfo calls those of x86 and, last, of ARM
_AMPERE: Final = (8, 0)  # the first compute capability with bf16
# oneDNN obeys the first of these that is set, torch's own kernels the last.
_LIMITS: Final[Mapping[str, frozenset[str]]] = {
    "ONEDNN_MAX_CPU_ISA": frozenset(
        {"sse41", "avx", "avx2", "avx2_vnni", "avx2_vnni_2", "avx512_core", "avx512_core_vnni"}
    ),
    "ATEN_CPU_CAPABILITY": frozenset({"default", "avx2"}),
}


def settled(value: T, device: Callable[[], str]) -> T:
    """A configuration in which every `auto` precision is the one that the device computes in; idempotent.

    Args:
        value: A pydantic model, or a tuple, list or mapping of such; anything else is returned as it is.
        device: Gives the torch device. It is called only where something says `auto`.
    """
    if isinstance(value, BaseModel):
        return cast("T", _settled_model(value, device))
    inner: Any = value
    if isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        inner = type(value)(settled(part, device) for part in value)
    elif isinstance(value, dict):
        inner = {name: settled(part, device) for name, part in value.items()}
    return inner if inner != value else value


def computed(asked: Precision, device: str) -> Computed:
    """The precision to compute in.

    Args:
        asked: As a setting says it.
        device: `cpu`, `cuda`, `cuda:1` or another torch device.
    """
    if asked != "auto":
        return asked
    return "fp32" if emulates_bf16(device) else "bf16"


def explained(asked: Precision, device: str) -> str:
    """The precision with its reason, for the first lines of a run."""
    lacking, kind = emulates_bf16(device), "processor" if device == "cpu" else "device"
    if asked == "auto":
        return f"fp32 ({lacking})" if lacking else f"bf16 (this {kind} has bf16 units)"
    if asked == "bf16" and lacking:
        return f"bf16 (as set; {lacking}, so bf16 is emulated and much slower than fp32)"
    return f"{asked} (as set)"


def emulates_bf16(device: str) -> str:
    """Why a device does not compute natively in bf16; empty if it does.

    Args:
        device: As `computed` takes it.
    """
    kind = device.partition(":")[0]
    if kind == "cpu":
        return _cpu_lacks(cpu_features(), os.environ)
    if kind == "cuda" and _cuda_has_units(device):
        return ""
    return "no bf16 units on this device"


@cache
def cpu_features() -> frozenset[str]:
    """Instruction sets of this processor as Linux lists them; empty on other systems."""
    listing = Path("/proc/cpuinfo")
    if not listing.exists():
        return frozenset()
    with listing.open(encoding="utf-8", errors="replace") as lines:
        found = (line.partition(":")[2] for line in lines if line.lower().startswith(("flags", "features")))
        return frozenset(next(found, "").split())


def _cpu_lacks(features: frozenset[str], environment: Mapping[str, str]) -> str:
    """Why a CPU does not compute natively in bf16; empty if it does."""
    if not features & _UNITS:
        return "no bf16 units on this processor"
    for name, low in _LIMITS.items():
        if (limit := environment.get(name, "")).lower() in low and platform.machine().lower() in ("x86_64", "amd64"):
            return f"{name}={limit} switches the bf16 units of this processor off"
    return ""


def _cuda_has_units(device: str) -> bool:
    import torch

    return torch.version.hip is not None or torch.cuda.get_device_capability(device) >= _AMPERE


def _settled_model(config: Any, device: Callable[[], str]) -> Any:  # noqa: ANN401  any pydantic model, and the same
    changes: dict[str, object] = {}
    for name, field in type(config).model_fields.items():
        before = getattr(config, name)
        # A translator's precision has other values, and its backend decides it.
        asks = field.annotation == Precision and before == "auto"
        after = computed("auto", device()) if asks else settled(before, device)
        if after is not before:
            changes[name] = after
    return config.model_copy(update=changes) if changes else config
