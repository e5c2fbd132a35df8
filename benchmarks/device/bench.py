"""Check a device's results, its speed and its share of the hardware limits; needs no store or server."""

from __future__ import annotations

import platform
import re
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl

from bsl.storage.assets.embedded import embedded_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.device.results import Rate
    from bsl.tasks.diagnostics.finding import Finding

SMALL: Final = {"num_hidden_layers": 2}  # smaller BERT-base, to check only that the bench runs


@dataclass(frozen=True)
class Sizes:
    """Amounts of work for a device.

    Attributes:
        compared: sentences for comparing the translations of both engines.
        batches: pairs per training step: the published number, and a number that fills a GPU.
        steps: training steps in each of three rounds.
        encoded: sentences to encode.
        probed: rows and folds of a probe.
        translated: sentences to translate.
    """

    compared: int
    batches: tuple[int, ...]
    steps: int
    encoded: int
    probed: tuple[int, int]
    translated: int


SIZES: Final = {
    "cuda": Sizes(1000, (64, 512), 20, 100_000, (10_662, 10), 16_384),
    "cpu": Sizes(256, (64,), 1, 512, (1000, 5), 256),
    "slow cpu": Sizes(128, (16,), 1, 128, (600, 3), 64),
}
QUICK: Final = Sizes(64, (64,), 2, 256, (600, 3), 128)
SLOW: Final = 250e9  # FLOP/s of fp32 products; below it, a step of BERT-base on 64 pairs takes over 15 seconds
BUDGETS: Final = {
    "cpu": {
        "vectors": 35, "steps of training": 40, "translations": 20, "two processes": 35, "training": 40,
        "encoding": 25, "probes": 15, "translation": 35,
    },
    "cuda": {
        "vectors": 45, "steps of training": 60, "translations": 60, "two processes": 55, "training": 70,
        "encoding": 45, "probes": 30, "translation": 65,
    },
}  # fmt: skip
"""Seconds for each section; for training, for each batch size."""
LEAST_S: Final = 1.0  # minimum for a section, even if earlier ones used up the time
TOTAL: Final = {"cpu": 285.0, "cuda": 585.0}
"""Seconds for all sections, including imports and limits; late sections get the rest."""


def bench(device_name: str, *, quick: bool = False) -> Iterator[Finding | Rate]:
    """Yield all checks and rates of a device as they are measured; a failing section loses only its own rows.

    Each section has a budget of seconds (`BUDGETS`) and reports if it was cut. Call this in the main thread only.

    Args:
        device_name: `cpu`, `cuda` or `cuda:1`.
        quick: use few layers and rounds, to check that it runs; the rates are then not meaningful.
    """
    began = time.monotonic()
    import torch

    from benchmarks.device import device_limits as card
    from benchmarks.device import distributed as processes
    from benchmarks.device import encoding, parity, training, translation
    from benchmarks.device.budget import within
    from benchmarks.device.fixtures import Fixtures

    device = torch.device(device_name)
    limits = card.measured(device)
    yield from limits.rates()
    slow = device.type == "cpu" and limits.flops["fp32"] < SLOW
    shape, sizes = (SMALL, QUICK) if quick else ({}, SIZES["slow cpu" if slow else device.type])
    ends = began + TOTAL[device.type]

    with tempfile.TemporaryDirectory() as scratch:
        fixtures = Fixtures(
            _texts(), embedded_path("bert-mini"), embedded_path("marian-mini-en-mul"), scratch=Path(scratch)
        )
        checks: dict[str, Iterator[Finding | Rate]] = {
            "vectors": parity.encoding(fixtures, limits),
            "steps of training": parity.stepping(fixtures, limits),
            "translations": translation.parity(fixtures, device, sizes.compared),
            "two processes": processes.parity(fixtures, device),
        }
        rates: dict[str, Iterator[Finding | Rate]] = {
            **{
                f"training, {size} pairs a step": training.rates(fixtures, limits, sizes.steps, size, **shape)
                for size in sizes.batches
            },
            "encoding": encoding.rates(fixtures, limits, sizes.encoded, **shape),
            "probes": encoding.probes(limits, *sizes.probed),
            "translation": translation.rates(fixtures, limits, sizes.translated),
        }
        for section, rows in {**checks, **rates}.items():
            budget = min(BUDGETS[device.type][section.partition(",")[0]], ends - time.monotonic())
            yield from within(section, rows, max(LEAST_S, budget), must=section in checks)


def _texts() -> list[str]:
    sample = pl.read_parquet(embedded_path("nli-sample") / "train.parquet")
    texts = pl.concat([sample["premise"], sample["hypothesis"]]).unique(maintain_order=True)
    return texts.sample(fraction=1.0, seed=1, shuffle=True).to_list()


def described(device_name: str) -> str:
    """Return device and library versions in one line, for the heading of the tables.

    Raises:
        ValueError: there is no such device.
    """
    from importlib.metadata import version

    import torch

    versions = ", ".join(f"{name} {version(name)}" for name in ("torch", "transformers", "ctranslate2"))
    if device_name == "cpu":
        return f"{_processor()}, {torch.get_num_threads()} threads; {versions}"
    cuda = re.fullmatch(r"cuda(?::(\d+))?", device_name)
    if cuda is None or torch.cuda.device_count() <= int(cuda[1] or 0):
        raise ValueError(
            f"no device {device_name}: torch {torch.__version__} sees {torch.cuda.device_count()} CUDA devices. "
            "Install a driver and a torch build for the GPU, or measure the CPU: python -m benchmarks cpu"
        )
    return f"{torch.cuda.get_device_name(device_name)}, CUDA {torch.version.cuda}; {versions}"


def _processor() -> str:
    """Return the processor's name on Linux, elsewhere its architecture."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
