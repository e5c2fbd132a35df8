"""What a device can do at best, measured: products and memory; and a clock that waits for it."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from models.bench.figures import Rate
from models.encoder.arithmetic import arithmetic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SHAPE = {"cuda": (8192, 8192, 8192), "cpu": (1024, 768, 3072)}  # rows, from, to: what fills a card; BERT-base's largest
COPIED = {"cuda": 1 << 30, "cpu": 1 << 27}  # bytes: much more than any cache holds


@dataclass(frozen=True)
class Card:
    """A device and its limits.

    Attributes:
        device: of torch.
        name: as the driver says it.
        flops: of dense products a second, by precision.
        bytes_per_s: read and written by a copy.
    """

    device: torch.device
    name: str
    flops: dict[str, float]
    bytes_per_s: float

    def rates(self) -> Iterator[Rate]:
        """The limits, as rows of the table."""
        for precision, flops in self.flops.items():
            yield Rate(f"limit: products, {precision}", flops / 1e9, "GFLOP/s")
        yield Rate("limit: memory", self.bytes_per_s / 1e9, "GB/s")


def measured(device: torch.device, shape: tuple[int, int, int] | None = None) -> Card:
    """Measure a device's limits.

    Args:
        device: of torch.
        shape: rows, from and to of the products; `SHAPE` of the device unless given.
    """
    shape = shape or SHAPE[device.type]
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    flops = {precision: _products(device, shape, bf16=precision == "bf16") for precision in ("fp32", "bf16")}
    if device.type == "cpu":
        flops["int8"] = _int8_products(shape)
    source = torch.randint(0, 255, (COPIED[device.type],), dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    copied = 2 * source.numel() / seconds(lambda: target.copy_(source), device, repeats=10)
    return Card(device, name, flops, copied)


def _products(device: torch.device, shape: tuple[int, int, int], *, bf16: bool) -> float:
    """A second's arithmetic of one `linear`, by the library that forward passes take."""
    rows, width, out = shape
    # Random numbers: zeros cost less power, and so run faster than real data do.
    dtype = torch.bfloat16 if bf16 else torch.float32
    x, weight = (torch.randn(n, width, device=device, dtype=dtype) for n in (rows, out))
    with torch.inference_mode(), arithmetic(device, bf16=bf16):
        return 2 * rows * width * out / seconds(partial(functional.linear, x, weight), device, repeats=10)


def _int8_products(shape: tuple[int, int, int]) -> float:
    rows, width, out = shape
    a, b = (torch.randint(-127, 128, shape, dtype=torch.int8) for shape in ((rows, width), (width, out)))
    return 2 * rows * width * out / seconds(partial(torch._int_mm, a, b), torch.device("cpu"), repeats=10)


def seconds(work: Callable[[], object], device: torch.device, repeats: int = 1, rounds: int = 3) -> float:
    """Seconds of some work: the median of some rounds of `repeats` each, after one that does not count."""
    taken = []
    for _ in range(rounds + 1):
        wait(device)
        began = time.perf_counter()
        for _ in range(repeats):
            work()
        wait(device)
        taken.append((time.perf_counter() - began) / repeats)
    return statistics.median(taken[1:])


def wait(device: torch.device) -> None:
    """Until the device has done all that it was asked."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
