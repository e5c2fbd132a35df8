"""`bsl bench gpu`: is a card right, how fast is it, and how near its limits; no store, no server."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl

from storage.embedded import embedded_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from models.bench.figures import Check, Rate
    from models.bench.fixtures import Fixtures

SMALL: Final = {"num_hidden_layers": 2}  # of BERT-base, where the bench only shows that it runs


def bench(device_name: str, *, quick: bool = False) -> Iterator[Check | Rate]:
    """All checks and rates of a device, each as soon as it is known.

    Args:
        device_name: `cuda`, `cuda:1`, or `cpu` to see the bench itself run.
        quick: few layers and rounds: that it runs; its rates mean little.
    """
    import torch

    from models.bench import card, encoding, parity, processes, training, translation

    device = torch.device(device_name)
    limits = card.measured(device)
    yield from limits.rates()
    shape = SMALL if quick else {}
    with tempfile.TemporaryDirectory() as scratch:
        fixtures = _fixtures(Path(scratch))
        yield from parity.encoding(fixtures, device)
        yield from parity.stepping(fixtures, device)
        yield from translation.parity(fixtures, device, 64 if quick else 1000)
        yield from processes.parity(fixtures, device)
        yield from training.rates(fixtures, limits, 2 if quick else 20, **shape)
        yield from encoding.rates(fixtures, limits, 256 if quick else 40_000, **shape)
        yield from encoding.probes(limits, *((600, 3) if quick else (10_662, 10)))
        yield from translation.rates(fixtures, limits, 128 if quick else 8192)


def _fixtures(scratch: Path) -> Fixtures:
    from models.bench.fixtures import Fixtures

    sample = pl.read_parquet(embedded_path("nli-sample") / "train.parquet")
    texts = pl.concat([sample["premise"], sample["hypothesis"]]).unique(maintain_order=True)
    mixed = texts.sample(fraction=1.0, seed=1, shuffle=True).to_list()
    return Fixtures(mixed, embedded_path("bert-mini"), embedded_path("marian-mini-en-mul"), scratch)


def described(device_name: str) -> str:
    """What was measured on what: a line above the tables.

    Raises:
        ValueError: there is no such device.
    """
    import platform
    from importlib.metadata import version

    import torch

    device = torch.device(device_name)
    versions = ", ".join(f"{name} {version(name)}" for name in ("torch", "transformers", "ctranslate2"))
    if device.type == "cpu":
        return f"CPU, {platform.machine()}, {torch.get_num_threads()} threads; {versions}"
    if device.type != "cuda" or torch.cuda.device_count() <= (device.index or 0):
        raise ValueError(
            f"no device {device_name}: torch {torch.__version__} sees {torch.cuda.device_count()} CUDA devices; run it "
            "where there is one with a torch built for it, or give --device cpu to see the bench itself run"
        )
    return f"{torch.cuda.get_device_name(device)}, CUDA {torch.version.cuda}; {versions}"
