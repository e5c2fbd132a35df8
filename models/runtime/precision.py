"""Which precision a device computes in: `auto` becomes bf16 or fp32 before anything is keyed.

bf16 pays only where the device multiplies in it natively. Elsewhere libraries emulate it: on a CPU with AVX2 a product
in bf16 takes seven times as long as one in fp32.

What forward passes compute with: bf16 where asked for, else fp32, on a CPU by oneDNN.

torch leaves fp32 products on x86 to MKL, which takes half of the vector width on processors that are not Intel's;
oneDNN, which torch carries too and uses for bf16, takes all of it: 2.1 times as fast on an AMD EPYC. The precision is
the same, only the order of a sum differs.

Shapes: N rows, D features in, E features out; rows may have more dimensions than one.
"""

from __future__ import annotations

import contextlib
import os
import platform
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

import torch
from pydantic import BaseModel
from torch.autograd.function import once_differentiable
from torch.nn import functional
from torch.overrides import TorchFunctionMode

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


def arithmetic(device: torch.device, *, bf16: bool) -> contextlib.AbstractContextManager[Any]:
    """Around a forward pass, also of training: bf16 autocast, or fp32 by the fastest products that the device has."""
    if bf16:
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return _Products() if device.type == "cpu" and _offered() else contextlib.nullcontext()


def _offered() -> bool:
    # The operator that torch's own compiler calls; elsewhere than on x86 torch's choice of library is as good.
    x86 = platform.machine().lower() in ("x86_64", "amd64")
    return x86 and hasattr(torch.ops.mkldnn, "_linear_pointwise")


class _Products(TorchFunctionMode):
    """Takes every `linear` of fp32 tensors on the CPU to oneDNN and leaves all else as it is."""

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> object:
        return (_linear if func is functional.linear else func)(*args, **(kwargs or {}))


def _linear(input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    if torch.is_autocast_enabled("cpu") or not _suits(input, weight, bias):
        return functional.linear(input, weight, bias)
    made: torch.Tensor = _Linear.apply(input, weight, bias)  # type: ignore[no-untyped-call]
    return made


def _suits(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> bool:
    """Whether oneDNN's operator is sure to see what torch's would: it checks no shapes and no strides of a bias."""
    shapes = x.ndim >= 2 and weight.ndim == 2 and x.shape[-1] == weight.shape[1] and x.numel() > 0
    fits = bias is None or (bias.shape == weight.shape[:1] and bias.is_contiguous())
    given = [each for each in (x, weight, bias) if each is not None]
    return shapes and fits and all(each.dtype is torch.float32 and each.device.type == "cpu" for each in given)


class _Linear(torch.autograd.Function):
    """x·Wᵀ + b and its gradients, each one product of oneDNN."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401  torch's own signature
        x_ND: torch.Tensor,
        weight_ED: torch.Tensor,
        bias_E: torch.Tensor | None,
    ) -> torch.Tensor:
        ctx.save_for_backward(x_ND, weight_ED)
        return _product(x_ND, weight_ED, bias_E)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: torch.Tensor) -> tuple[torch.Tensor | None, ...]:  # noqa: ANN401
        x, weight_ED = ctx.saved_tensors
        for_x, for_weight, for_bias = ctx.needs_input_grad
        slope_NE, x_ND = slope.flatten(0, -2), x.flatten(0, -2)
        return (
            _product(slope, weight_ED.T) if for_x else None,
            _product(slope_NE.T, x_ND.T) if for_weight else None,
            slope_NE.sum(0) if for_bias else None,
        )


def _product(x_ND: torch.Tensor, weight_ED: torch.Tensor, bias_E: torch.Tensor | None = None) -> torch.Tensor:
    made_NE: torch.Tensor = torch.ops.mkldnn._linear_pointwise(x_ND, weight_ED, bias_E, "none", [], "")
    return made_NE
