"""Check that two processes training one model reach the weights of one process, up to rounding.

torchrun runs this module, with the arguments ENCODER PAIRS DEVICE COMPUTATION:
`python -m torch.distributed.run … -m benchmarks.device.distributed`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl
import torch
from safetensors.torch import load_file, save_file

from benchmarks.device.budget import finished
from benchmarks.device.fixtures import LENGTH
from benchmarks.device.results import at_most, holds, not_run
from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.objectives.bsl_config import BSLConfig
from bsl.models.training.config import TrainingConfig
from bsl.models.training.distributed import is_first, joined
from bsl.models.training.loop import train
from bsl.models.training.snapshots import Execution

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.device.fixtures import Fixtures
    from bsl.tasks.diagnostics.finding import Finding

COUNT: Final = 2
ROUNDING: Final = 1e-3  # after eight steps of Adam, which amplifies gradients that are only rounding error


def parity(fixtures: Fixtures, device: torch.device) -> Iterator[Finding]:
    """Compare the weights trained by one process and by two, which on GPUs communicate by NCCL."""
    name = f"weights trained by {COUNT} processes and by one, largest difference"
    gpus = torch.cuda.device_count()
    if device.type == "cuda" and gpus < COUNT:
        yield not_run(name, f"needs {COUNT} GPUs, found {gpus}")
        return
    pairs, weights_file = fixtures.scratch / "pairs.parquet", fixtures.scratch / "shared.safetensors"
    fixtures.pairs.head(256).write_parquet(pairs)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={COUNT}"]
    arguments = [str(fixtures.encoder), str(pairs), device.type, str(weights_file)]
    log = fixtures.scratch / "shared.log"
    if finished([*launcher, "-m", __name__, *arguments], log):
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        yield holds(name, False, lines[-1] if lines else "no message")
        return
    alone, shared = _trained(fixtures.encoder, pairs, str(device)), load_file(weights_file)
    yield at_most(name, max(float((alone[key] - shared[key]).abs().max()) for key in shared), ROUNDING)


def _trained(encoder: Path, pairs: Path, device: str) -> dict[str, torch.Tensor]:
    start = SentenceEncoder.load(encoder, EncoderConfig(model="bench", max_length=LENGTH))
    config = TrainingConfig(
        objective=BSLConfig(k=2), precision="fp32", max_steps=8, batch_size=32, collapse=None, select="last", lr=1e-4
    )
    result = train(pl.read_parquet(pairs), start, config, execution=Execution(device=device))
    return {name: tensor.contiguous() for name, tensor in result.encoder.state_dict().items()}


def main(encoder: str, pairs: str, kind: str, weights_file: str) -> None:
    """Train in one of the processes; the first process saves the weights."""
    with joined(kind) as device:
        weights = _trained(Path(encoder), Path(pairs), device)
        if is_first():
            save_file(weights, weights_file)


if __name__ == "__main__":
    main(*sys.argv[1:])
