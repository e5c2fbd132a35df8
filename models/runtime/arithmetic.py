"""What forward passes compute with: bf16 where asked for, else fp32, on a CPU by oneDNN.

torch leaves fp32 products on x86 to MKL, which takes half of the vector width on processors that are not Intel's;
oneDNN, which torch carries too and uses for bf16, takes all of it: 2.1 times as fast on an AMD EPYC. The precision is
the same, only the order of a sum differs.

Shapes: N rows, D features in, E features out; rows may have more dimensions than one.
"""

from __future__ import annotations

import contextlib
import platform
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd.function import once_differentiable
from torch.nn import functional
from torch.overrides import TorchFunctionMode

if TYPE_CHECKING:
    from collections.abc import Callable


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
