"""`bsl bench`: whether a processor or GPU computes right, how fast it is, how near its limits; no store, no server."""

from __future__ import annotations

import platform
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl

from storage.assets.embedded import embedded_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tasks.diagnostics.benchmark.device_limits import Card
    from tasks.diagnostics.benchmark.fixtures import Fixtures
    from tasks.diagnostics.benchmark.results import Check, Rate

SMALL: Final = {"num_hidden_layers": 2}  # of BERT-base, where the bench only shows that it runs


@dataclass(frozen=True)
class Sizes:
    """How much a device is given to do.

    Attributes:
        alike: sentences that both engines must translate alike.
        batches: pairs a step of training: as published, and what fills a card.
        steps: of training, in each of three rounds.
        encoded: sentences.
        probed: rows and folds of a probe.
        translated: sentences.
    """

    alike: int
    batches: tuple[int, ...]
    steps: int
    encoded: int
    probed: tuple[int, int]
    translated: int


SIZES: Final = {
    "cuda": Sizes(1000, (64, 512), 20, 40_000, (10_662, 10), 8192),
    "cpu": Sizes(256, (64,), 1, 512, (1000, 5), 256),
    "slow cpu": Sizes(128, (16,), 1, 128, (600, 3), 64),
}
QUICK: Final = Sizes(64, (64,), 2, 256, (600, 3), 128)
SLOW: Final = 250e9  # FLOP/s of fp32 products, below which a step of BERT-base on 64 pairs takes a quarter of a minute
BUDGETS: Final = {
    "cpu": {
        "vectors": 35, "steps of training": 40, "translations": 20, "two processes": 35, "training": 40,
        "encoding": 25, "probes": 15, "translation": 35,
    },
    "cuda": {
        "vectors": 45, "steps of training": 60, "translations": 60, "two processes": 55, "training": 70,
        "encoding": 45, "probes": 30, "translation": 65, "compiled": 50,
    },
}  # fmt: skip
"""Seconds of each section; of training, of each batch size."""
LEAST_S: Final = 1.0  # of a section, where the others took the time
TOTAL: Final = {"cpu": 285.0, "cuda": 585.0}
"""Seconds of all sections, imports and limits included: the last ones get what is left."""


def bench(device_name: str, *, quick: bool = False) -> Iterator[Check | Rate]:
    """All checks and rates of a device, each as soon as it is known; a section that fails loses its own rows alone.

    Each section has a budget of seconds (`BUDGETS`) and says so where it was cut; for the main thread alone.

    Args:
        device_name: `cpu`, `cuda` or `cuda:1`.
        quick: few layers and rounds, to see that it runs; its rates mean little.
    """
    began = time.monotonic()
    import torch

    from tasks.diagnostics.benchmark import device_limits as card
    from tasks.diagnostics.benchmark import distributed as processes
    from tasks.diagnostics.benchmark import encoding, parity, training, translation
    from tasks.diagnostics.benchmark import torch_compile as compiled
    from tasks.diagnostics.benchmark.budget import within
    from tasks.diagnostics.benchmark.results import as_far_as_it_goes

    device = torch.device(device_name)
    limits = card.measured(device)
    yield from limits.rates()
    shape, sizes = (SMALL, QUICK) if quick else ({}, _sizes(limits))
    ends = began + TOTAL[device.type]

    def budget_of(section: str) -> float:
        return max(LEAST_S, min(BUDGETS[device.type][section], ends - time.monotonic()))

    with tempfile.TemporaryDirectory() as scratch:
        fixtures = _fixtures(Path(scratch))
        checks: dict[str, Iterator[Check]] = {
            "vectors": parity.encoding(fixtures, limits),
            "steps of training": parity.stepping(fixtures, limits),
            "translations": translation.parity(fixtures, device, sizes.alike),
            "two processes": processes.parity(fixtures, device),
        }
        for section, checked in checks.items():
            yield from within(section, as_far_as_it_goes(section, checked, must=True), budget_of(section))
        rates: dict[str, Iterator[Check | Rate]] = {
            **{
                f"training, {size} pairs a step": training.rates(fixtures, limits, sizes.steps, (size,), **shape)
                for size in sizes.batches
            },
            "encoding": encoding.rates(fixtures, limits, sizes.encoded, **shape),
            "probes": encoding.probes(limits, *sizes.probed),
            "translation": translation.rates(fixtures, limits, sizes.translated),
        }
        if device.type == "cuda":  # last: it may take its time, or find no compiler
            rates["compiled"] = compiled.rate(fixtures, limits, sizes.steps, min(sizes.batches), **shape)
        for section, timed in rates.items():
            budget = budget_of(section.partition(",")[0])
            yield from within(section, as_far_as_it_goes(section, timed, must=False), budget)


def _sizes(limits: Card) -> Sizes:
    slow = limits.device.type == "cpu" and limits.flops["fp32"] < SLOW
    return SIZES["slow cpu" if slow else limits.device.type]


def _fixtures(scratch: Path) -> Fixtures:
    from tasks.diagnostics.benchmark.fixtures import Fixtures

    sample = pl.read_parquet(embedded_path("nli-sample") / "train.parquet")
    texts = pl.concat([sample["premise"], sample["hypothesis"]]).unique(maintain_order=True)
    mixed = texts.sample(fraction=1.0, seed=1, shuffle=True).to_list()
    return Fixtures(mixed, embedded_path("bert-mini"), embedded_path("marian-mini-en-mul"), scratch)


def described(device_name: str) -> str:
    """What was measured on what: a line above the tables.

    Raises:
        ValueError: there is no such device.
    """
    from importlib.metadata import version

    import torch

    device = torch.device(device_name)
    versions = ", ".join(f"{name} {version(name)}" for name in ("torch", "transformers", "ctranslate2"))
    if device.type == "cpu":
        return f"{_processor()}, {torch.get_num_threads()} threads; {versions}"
    if device.type != "cuda" or torch.cuda.device_count() <= (device.index or 0):
        raise ValueError(
            f"no device {device_name}: torch {torch.__version__} sees {torch.cuda.device_count()} CUDA devices; run it "
            "where there is one with a torch built for it, or measure the processor: bsl bench cpu"
        )
    return f"{torch.cuda.get_device_name(device)}, CUDA {torch.version.cuda}; {versions}"


def _processor() -> str:
    """Its name where Linux says it, else its kind."""
    told = Path("/proc/cpuinfo")
    lines = told.read_text(encoding="utf-8").splitlines() if told.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
