"""Resolve precision `auto` to bf16 or fp32 for a device, before artifact keys are computed.

Not every device is faster in bf16. A CPU with AVX2 emulates it: a bf16 product takes seven times as long as one in
fp32. With the bf16 units of AVX-512 it takes half as long on AMD, but 1.8 times as long on an Intel processor without
AMX, or whose virtual machine hides AMX.
"""

from __future__ import annotations

import os
import platform
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Precision = Literal["auto", "fp32", "bf16"]
"""Precision in settings: `auto` is bf16 where the device computes faster in it, else fp32."""
Computed = Literal["fp32", "bf16"]
"""Resolved precision, as in artifact keys."""

T = TypeVar("T")

# Names in /proc/cpuinfo.
_UNITS: Final = {"avx512_bf16", "amx_bf16", "bf16"}  # two of x86, one of ARM
_INTEL: Final = "GenuineIntel"
_AMX: Final = "amx_bf16"
_AMPERE: Final = (8, 0)  # the first compute capability with bf16
_ONEDNN: Final = "ONEDNN_MAX_CPU_ISA"
# Variables that limit instruction sets (first: of oneDNN, second: of torch's own kernels) → values without bf16.
_LIMITS: Final[Mapping[str, frozenset[str]]] = {
    _ONEDNN: frozenset({"sse41", "avx", "avx2", "avx2_vnni", "avx2_vnni_2", "avx512_core", "avx512_core_vnni"}),
    "ATEN_CPU_CAPABILITY": frozenset({"default", "avx2"}),
}
# Values of the first that leave bf16 but no AMX.
_AMX_LIMITS: Final = frozenset({"avx512_core_bf16", "avx512_core_fp16", "avx10_1_512"})


def with_resolved_precision(value: T, device: Callable[[], str]) -> T:
    """Replace every precision `auto` in a configuration by the device's precision; idempotent.

    Args:
        value: A pydantic model, or a tuple, list or mapping of such; anything else is returned unchanged.
        device: Returns the torch device; called only if a precision is `auto`.
    """
    if isinstance(value, BaseModel):
        return cast("T", _resolved_model(value, device))
    inner: Any = value
    if isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        inner = type(value)(with_resolved_precision(part, device) for part in value)
    elif isinstance(value, dict):
        inner = {name: with_resolved_precision(part, device) for name, part in value.items()}
    return inner if inner != value else value


def computed(precision: Precision, device: str) -> Computed:
    """Resolve `auto` to the precision that a torch device (`cpu`, `cuda`, `cuda:1`) computes in."""
    if precision != "auto":
        return precision
    return "fp32" if why_fp32(device) else "bf16"


def explained(precision: Precision, device: str) -> str:
    """Return the precision with its reason, for the first lines of a run."""
    reason, kind = why_fp32(device), "processor" if device == "cpu" else "device"
    if precision == "auto":
        return f"fp32 ({reason})" if reason else f"bf16 (this {kind} has bf16 units)"
    if precision == "bf16" and reason:
        return f"bf16 (as set; slower than fp32: {reason})"
    return f"{precision} (as set)"


def why_fp32(device: str) -> str:
    """Return why a torch device is no faster in bf16 than in fp32; empty if it is."""
    kind = device.partition(":")[0]
    if kind == "cpu":
        return _why_cpu(cpu_features(), os.environ)
    if kind == "cuda":
        import torch

        if torch.version.hip is not None or torch.cuda.get_device_capability(device) >= _AMPERE:
            return ""
    return "no bf16 units on this device"


@cache
def cpu_features() -> frozenset[str]:
    """Return the vendor and instruction sets of this processor as Linux lists them; empty on other systems."""
    listing = Path("/proc/cpuinfo")
    if not listing.exists():
        return frozenset()
    first = listing.read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
    rows = [line.partition(":") for line in first.splitlines()]
    named = [values.split() for name, _, values in rows if name.strip().lower() in ("vendor_id", "flags", "features")]
    return frozenset(chain.from_iterable(named))


def _why_cpu(features: frozenset[str], environment: Mapping[str, str]) -> str:
    """Return why a CPU is no faster in bf16 than in fp32; empty if it is."""
    if not features & _UNITS:
        return "no bf16 units on this processor"
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return ""
    for name, low in _LIMITS.items():
        if (limit := environment.get(name, "")).lower() in low:
            return f"{name}={limit} disables the bf16 units of this processor"
    if _INTEL not in features:
        return ""
    if _AMX not in features:
        return "without AMX, this processor is slower in bf16"
    if (limit := environment.get(_ONEDNN, "")).lower() in _AMX_LIMITS:
        return f"{_ONEDNN}={limit} disables AMX, without which this processor is slower in bf16"
    return ""


def _resolved_model(config: Any, device: Callable[[], str]) -> Any:  # noqa: ANN401  any pydantic model, and the same
    changes: dict[str, object] = {}
    for name, field in type(config).model_fields.items():
        before = getattr(config, name)
        # A translator's precision is of another type, and its backend resolves it.
        asks = field.annotation == Precision and before == "auto"
        after = computed("auto", device()) if asks else with_resolved_precision(before, device)
        if after is not before:
            changes[name] = after
    return config.model_copy(update=changes) if changes else config
