"""Measure the gain of torch's compiler for a training step, in a child process: it is slow, or lacks a compiler.

The child runs this module: `python -m tasks.diagnostics.benchmark.torch_compile ASKED MADE`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import torch

from tasks.diagnostics.benchmark.budget import finished
from tasks.diagnostics.benchmark.device_limits import Card
from tasks.diagnostics.benchmark.fixtures import Fixtures
from tasks.diagnostics.benchmark.results import FAULTS, Check, Rate, not_run, reason
from tasks.diagnostics.benchmark.training import compiled

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMIT_S: Final = 45.0  # to compile BERT-base twice, each with a forward and a backward pass


def rate(
    fixtures: Fixtures, card: Card, steps: int, size: int, limit_s: float = LIMIT_S, **shape: int
) -> Iterator[Check | Rate]:
    """Yield the row of `training.compiled`, or the reason why it could not be measured."""
    name = f"training, {size} pairs a step, bf16, both passes compiled by torch"
    if "bf16" not in card.precisions:
        yield not_run(name, f"bf16: {card.emulated}")
        return
    asked, made, log = (fixtures.scratch / f"compiled.{ending}" for ending in ("asked", "made", "log"))
    folders = {"encoder": str(fixtures.encoder), "translator": str(fixtures.translator)}
    limits = {"name": card.name, "flops": card.flops, "bytes_per_s": card.bytes_per_s}
    work = {"steps": steps, "size": size, **shape}
    told = {"texts": fixtures.texts, "folders": folders, "device": str(card.device), "limits": limits, "work": work}
    asked.write_text(json.dumps(told), encoding="utf-8")
    try:
        code = finished([sys.executable, "-m", __name__, str(asked), str(made)], log, limit_s)
    except subprocess.TimeoutExpired:
        yield not_run(name, f"not ready after {limit_s:g} s")
        return
    if code:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        yield not_run(name, lines[-1] if lines else f"ended with exit code {code}")
        return
    yield Rate(**json.loads(made.read_text(encoding="utf-8")))


def main(asked: Path, made: Path) -> None:
    """Run the requested measurement in the child process."""
    told = json.loads(asked.read_text(encoding="utf-8"))
    folders = {name: Path(folder) for name, folder in told["folders"].items()}
    fixtures = Fixtures(told["texts"], scratch=asked.parent, **folders)
    try:
        row = compiled(fixtures, Card(torch.device(told["device"]), **told["limits"]), **told["work"])
    except FAULTS as error:
        sys.exit(reason(error))
    made.write_text(json.dumps(asdict(row)), encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
