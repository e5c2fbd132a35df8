"""Devices: copies to and from them, the arithmetic of forward passes, and processes that share a batch.

Arithmetic is bf16 if requested, else fp32. On x86, torch computes fp32 products by MKL, which uses half of the vector
width on processors that are not Intel's. There they go to oneDNN, which torch includes and uses for bf16: 2.1 times as
fast on an AMD EPYC. On an Intel Xeon MKL is faster, by a seventh in training. The precision is the same; only the order
of sums differs.

fp32 is IEEE single precision, also if the caller's program allows TF32 (`torch_settings`).

Processes embed a batch together: each embeds its share of the rows, and all receive all vectors. Every process computes
the rest (predictor, batch statistics, negatives, loss) on the whole batch. So the result equals that of one process,
and objectives do not depend on the number of processes. The rest is a small part of a step.

Shapes: N rows, D features in, E features out; rows may have more dimensions than one; B rows of all
processes, S of one.
"""

from __future__ import annotations

import contextlib
import itertools
import platform
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import distributed
from torch.autograd.function import once_differentiable
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from bsl.models.errors import TrainingError
from bsl.models.runtime.torch_settings import evaluating, ieee_products, without_cudnn_attention

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")


def uploaded(array: NDArray[np.generic] | torch.Tensor, device: torch.device) -> torch.Tensor:
    """Copy an array to a device as a tensor, without waiting for work queued on the device.

    A copy to a GPU from memory that is not pinned would wait for all work queued before.
    """
    tensor = array if isinstance(array, torch.Tensor) else torch.from_numpy(array)
    if device.type != "cuda" or tensor.is_cuda:
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def wait(device: torch.device) -> None:
    """Wait until the device has finished all queued work; for example, before reading a clock."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


class Download:
    """Asynchronous copy of a tensor from the device: started at once, and waited for when read."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor, self._done = tensor, None
        if tensor.device.type == "cuda":
            self._tensor = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
            self._tensor.copy_(tensor, non_blocking=True)
            self._done = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._done.record()

    def numpy(self) -> NDArray[np.float32]:
        """Wait for the copy and return it."""
        if self._done is not None:
            self._done.synchronize()
        array: NDArray[np.float32] = self._tensor.numpy()
        return array


def prefetch_one(items: Iterable[T]) -> Iterator[T]:
    """Yield each item after the next one is made, so that a device has work while the last result is read."""
    return (item for item, _ in itertools.pairwise(itertools.chain(items, (None,))) if item is not None)


@contextlib.contextmanager
def arithmetic(device: torch.device, *, bf16: bool) -> Iterator[None]:
    """Compute a forward pass inside the block: in bf16 autocast, or in fp32 by the device's fastest products."""
    on_gpu = device.type == "cuda"
    with (
        ieee_products(),
        without_cudnn_attention() if on_gpu else contextlib.nullcontext(),
        _product_mode(device, bf16),
    ):
        yield


@contextlib.contextmanager
def frozen_passes(network: torch.nn.Module, device: torch.device, *, bf16: bool) -> Iterator[None]:
    """Compute passes without dropout and gradients inside the block, by the device's `arithmetic`."""
    # In inference mode autocast rounds the weights for every pass: a seventh of a small encoder's time on a CPU.
    # On a GPU the weights of frozen passes are rounded before.
    without_gradients = torch.no_grad() if bf16 and device.type == "cpu" else torch.inference_mode()
    with evaluating(network), without_gradients, arithmetic(device, bf16=bf16):
        yield


def _product_mode(device: torch.device, bf16: bool) -> contextlib.AbstractContextManager[Any]:
    if bf16:
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return _Products() if device.type == "cpu" and onednn_is_faster() else contextlib.nullcontext()


@cache
def onednn_is_faster() -> bool:
    """Return whether oneDNN computes fp32 products faster than torch's choice: on x86 processors but Intel's."""
    capabilities: Callable[[], dict[str, object]] = getattr(torch.cpu, "get_capabilities", dict)
    return has_onednn_linear() and "Intel" not in str(capabilities().get("cpu_name"))


def has_onednn_linear() -> bool:
    """Return whether torch has oneDNN's product as an operator; without it, torch chooses the library."""
    # The operator that torch's own compiler calls; on other platforms than x86, torch's choice of library is as good.
    x86 = platform.machine().lower() in ("x86_64", "amd64")
    return x86 and hasattr(torch.ops.mkldnn, "_linear_pointwise")


class _Products(TorchFunctionMode):
    """Compute every `linear` of fp32 tensors on the CPU by oneDNN, without changing other functions."""

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
    output: torch.Tensor = _Linear.apply(input, weight, bias)  # type: ignore[no-untyped-call]
    return output


def _suits(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> bool:
    """Return whether oneDNN's operator is safe for these tensors; it checks neither shapes nor strides of a bias."""
    shapes = x.ndim >= 2 and weight.ndim == 2 and x.shape[-1] == weight.shape[1] and x.numel() > 0
    fits = bias is None or (bias.shape == weight.shape[:1] and bias.is_contiguous())
    given = [each for each in (x, weight, bias) if each is not None]
    return shapes and fits and all(each.dtype is torch.float32 and each.device.type == "cpu" for each in given)


class _Linear(torch.autograd.Function):
    """x·Wᵀ + b and its gradients, each as one oneDNN product."""

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
    output_NE: torch.Tensor = torch.ops.mkldnn._linear_pointwise(x_ND, weight_ED, bias_E, "none", [], "")
    return output_NE


def processes() -> int:
    """Return the number of processes that train together; 1 for a single process."""
    return distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1


def own_share(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return this process's share of the rows of a batch.

    Raises:
        TrainingError: The number of rows is not a multiple of the number of processes.
    """
    share, remainder = divmod(len(rows), processes())
    if remainder:
        raise TrainingError(
            f"a batch of {len(rows)} sentences cannot be divided equally among {processes()} processes. Set "
            "training.batch_size to a multiple of the number of processes."
        )
    start = share * distributed.get_rank() if processes() > 1 else 0
    return rows[start : start + share]


def gather_shares(x_SD: torch.Tensor) -> torch.Tensor:
    """Gather the shares (S, D) of all processes, in the order of the rows: (B, D); differentiable.

    Every process must then compute the same loss. Its own rows get the gradient of the whole loss, and the gradients of
    data-parallel weights must be summed over the processes.
    """
    if processes() == 1:
        return x_SD
    x_BD: torch.Tensor = _Gather.apply(x_SD)  # type: ignore[no-untyped-call]
    return x_BD


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_SD: torch.Tensor) -> torch.Tensor:  # noqa: ANN401  torch's own signature
        ctx.rows = len(x_SD)
        shares = [torch.empty_like(x_SD) for _ in range(processes())]
        distributed.all_gather(shares, x_SD.contiguous())
        return torch.cat(shares)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:  # noqa: ANN401
        start = distributed.get_rank() * ctx.rows
        return grads[0][start : start + ctx.rows].contiguous()
