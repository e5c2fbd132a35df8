"""Measure a device's limits (matrix products, memory bandwidth), and time work on it."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from benchmarks.device.results import Rate, not_run
from bsl.models.runtime.device import arithmetic, wait
from bsl.models.runtime.precision import why_fp32

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bsl.models.runtime.precision import Computed
    from bsl.tasks.diagnostics.finding import Finding

SHAPE = {"cuda": (8192, 8192, 8192), "cpu": (1024, 768, 3072)}  # rows, in, out: fills a GPU; BERT-base's largest
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
LIMIT_S = 6.0  # maximum for all rounds of a measurement
COPIED = {"cuda": 1 << 30, "cpu": 1 << 27}  # bytes: much larger than any cache


@dataclass(frozen=True)
class Card:
    """A device and its limits.

    Attributes:
        device: torch device.
        flops: FLOP/s of dense products, by precision; without bf16 if the device emulates it.
        bytes_per_s: bytes per second read and written by a copy.
    """

    device: torch.device
    flops: dict[str, float]
    bytes_per_s: float

    @property
    def precisions(self) -> tuple[Computed, ...]:
        """Useful precisions for training and encoding: fp32, and bf16 if the device is faster in it."""
        return ("fp32", "bf16") if "bf16" in self.flops else ("fp32",)

    @property
    def why_not_bf16(self) -> str:
        """Reason why bf16 is not measured; empty if it is."""
        return why_fp32(str(self.device))

    def rates(self) -> Iterator[Finding | Rate]:
        """Yield the limits as rows of the tables."""
        for precision, flops in self.flops.items():
            yield Rate(f"limit: products, {precision}", flops / 1e9, "GFLOP/s")
        if "bf16" not in self.flops:
            yield not_run("bf16", f"not used: {self.why_not_bf16}")
        yield Rate("limit: memory", self.bytes_per_s / 1e9, "GB/s")


def measured(device: torch.device, shape: tuple[int, int, int] | None = None) -> Card:
    """Measure a device's limits.

    Args:
        device: torch device.
        shape: rows, in and out dimensions of the products; by default `SHAPE` of the device.
    """
    shape = shape or SHAPE[device.type]
    precisions = ("fp32",) if why_fp32(str(device)) else ("fp32", "bf16")
    flops = {precision: _products(device, shape, precision) for precision in precisions}
    if device.type == "cpu":
        flops["int8"] = _int8_products(shape)
    else:
        flops["fp16"] = _products(device, shape, "fp16")
    source = torch.randint(0, 255, (COPIED[device.type],), dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    copied = 2 * source.numel() / seconds(lambda: target.copy_(source), device, repeats=10)
    return Card(device, flops, copied)


def _products(device: torch.device, shape: tuple[int, int, int], precision: str) -> float:
    """Return FLOP/s of one `linear`, by the library that forward passes use."""
    rows, width, out = shape
    # Random numbers: zeros cost less power, and so run faster than real data.
    x, weight = (torch.randn(n, width, device=device).to(DTYPES[precision]) for n in (rows, out))
    with torch.inference_mode(), arithmetic(device, bf16=precision == "bf16"):
        return 2 * rows * width * out / seconds(partial(functional.linear, x, weight), device, repeats=10)


def _int8_products(shape: tuple[int, int, int]) -> float:
    rows, width, out = shape
    a, b = (torch.randint(-127, 128, shape, dtype=torch.int8) for shape in ((rows, width), (width, out)))
    return 2 * rows * width * out / seconds(partial(int8_product, a, b), torch.device("cpu"), repeats=10)


def int8_product(a_NK: torch.Tensor, b_KM: torch.Tensor) -> torch.Tensor:
    """Return the product of int8 matrices, (N, M) int32; without torch's int8 kernel, by its slower kernel of int32."""
    if hasattr(torch, "_int_mm"):
        return torch._int_mm(a_NK, b_KM)
    return torch.mm(a_NK.int(), b_KM.int())


def seconds(
    work: Callable[[], object], device: torch.device, repeats: int = 1, rounds: int = 3, limit_s: float = LIMIT_S
) -> float:  # fmt: skip
    """Return the seconds of one call: the median of rounds of `repeats` calls each, after an uncounted first call.

    Args:
        work: computes, or queues work on the device.
        device: device to wait for before the clock is read.
        repeats: calls per round.
        rounds: rounds for the median.
        limit_s: maximum seconds, enforced by fewer repeats and rounds; one round always runs.
    """
    elapsed: list[float] = []
    if _round(work, device, 1) * repeats * rounds > limit_s:  # the first call includes set-up; time a second one
        once = _round(work, device, 1)
        repeats = max(1, min(repeats, int(limit_s / rounds / once)))
        elapsed += [once] if repeats == 1 else []
    while len(elapsed) < rounds and sum(elapsed) * repeats < limit_s:
        elapsed.append(_round(work, device, repeats))
    return statistics.median(elapsed)


def _round(work: Callable[[], object], device: torch.device, repeats: int) -> float:
    wait(device)
    began = time.perf_counter()
    for _ in range(repeats):
        work()
    wait(device)
    return (time.perf_counter() - began) / repeats
