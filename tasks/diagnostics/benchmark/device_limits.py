"""What a device can do at best, measured: products and memory; and a clock that waits for it."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import torch
from torch.nn import functional

from models.runtime.device import arithmetic, wait
from tasks.diagnostics.benchmark.results import Check, Rate, not_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Precision = Literal["fp32", "bf16"]

SHAPE = {"cuda": (8192, 8192, 8192), "cpu": (1024, 768, 3072)}  # rows, from, to: what fills a card; BERT-base's largest
PROBE = {"cuda": (2048, 2048, 2048), "cpu": (512, 768, 768)}  # small: by which a precision without units is seen
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
LIMIT_S = 6.0  # of all rounds of a work, where it takes longer than a few rounds should
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

    @property
    def precisions(self) -> tuple[Precision, ...]:
        """Those that training and encoding gain from here: fp32, and bf16 where its products are faster."""
        return precisions_of(self.flops)

    @property
    def emulated(self) -> str:
        """Why bf16 is not measured."""
        return f"emulated, {self.flops['bf16'] / 1e9:,.0f} GFLOP/s, not used"

    def rates(self) -> Iterator[Check | Rate]:
        """The limits, as rows of the tables."""
        for precision, flops in self.flops.items():
            if precision == "bf16" and precision not in self.precisions:
                yield not_run(precision, self.emulated)
            else:
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
    flops = probed(device)
    flops |= {precision: _products(device, shape, precision) for precision in precisions_of(flops)}
    if device.type == "cpu":
        flops["int8"] = _int8_products(shape)
    else:
        flops["fp16"] = _products(device, shape, "fp16")
    source = torch.randint(0, 255, (COPIED[device.type],), dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    copied = 2 * source.numel() / seconds(lambda: target.copy_(source), device, repeats=10)
    return Card(device, name, flops, copied)


def probed(device: torch.device) -> dict[str, float]:
    """Return FLOP/s of a small product in fp32 and in bf16, which take a moment on any machine."""
    return {precision: _products(device, PROBE[device.type], precision) for precision in ("fp32", "bf16")}


def precisions_of(flops: Mapping[str, float]) -> tuple[Precision, ...]:
    """Return fp32, and bf16 where it is faster; where it is not, the device emulates it."""
    return ("fp32", "bf16") if flops["bf16"] > flops["fp32"] else ("fp32",)


def _products(device: torch.device, shape: tuple[int, int, int], precision: str) -> float:
    """A second's arithmetic of one `linear`, by the library that forward passes take."""
    rows, width, out = shape
    # Random numbers: zeros cost less power, and so run faster than real data do.
    x, weight = (torch.randn(n, width, device=device).to(DTYPES[precision]) for n in (rows, out))
    with torch.inference_mode(), arithmetic(device, bf16=precision == "bf16"):
        return 2 * rows * width * out / seconds(partial(functional.linear, x, weight), device, repeats=10)


def _int8_products(shape: tuple[int, int, int]) -> float:
    rows, width, out = shape
    a, b = (torch.randint(-127, 128, shape, dtype=torch.int8) for shape in ((rows, width), (width, out)))
    return 2 * rows * width * out / seconds(partial(torch._int_mm, a, b), torch.device("cpu"), repeats=10)


def seconds(
    work: Callable[[], object], device: torch.device, repeats: int = 1, rounds: int = 3, limit_s: float = LIMIT_S
) -> float:  # fmt: skip
    """Seconds of some work: the median of some rounds of `repeats` each, after a first call that does not count.

    Args:
        work: queues on the device, or computes.
        device: is waited for before a clock is read.
        repeats: calls a round.
        rounds: of which the median is taken.
        limit_s: seconds after which there are fewer repeats and no further round; one round there always is.
    """
    taken: list[float] = []
    if _round(work, device, 1) * repeats * rounds > limit_s:  # the first call prepares much; a second one decides
        once = _round(work, device, 1)
        repeats = max(1, min(repeats, int(limit_s / rounds / once)))
        taken += [once] if repeats == 1 else []
    while len(taken) < rounds and sum(taken) * repeats < limit_s:
        taken.append(_round(work, device, repeats))
    return statistics.median(taken)


def _round(work: Callable[[], object], device: torch.device, repeats: int) -> float:
    wait(device)
    began = time.perf_counter()
    for _ in range(repeats):
        work()
    wait(device)
    return (time.perf_counter() - began) / repeats
