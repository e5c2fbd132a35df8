"""Training: milliseconds per step of each system of systems/ and of its peer, as one Markdown table.

    python -m benchmarks.speed.bench_systems                  all systems, both encoders, 5 rounds: half an hour
    python -m benchmarks.speed.bench_systems --quick          one encoder, 2 rounds: minutes
    python -m benchmarks.speed.bench_systems --only tsdae mlm

A file of systems/ has `steps(encoder_folder, pairs)`, which returns two callables: our whole optimizer step on the next
batch (forward, backward, clip, AdamW), and the peer's on the same pairs; each returns its loss. `PEER`, or else the
first line of the file, names the peer. The two alternate, so that other load affects both; a first round warms up and
does not count. fp32, real sentences; `6x384` is a BERT of 6 layers, width 384, with random weights.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import torch
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM
from transformers.utils import logging as hf_logging

from benchmarks.speed.training_work import sentences
from bsl.storage.assets.embedded import embedded_path

MINI = "bert-mini"
ENCODERS = ("6x384", MINI)
SYSTEMS = sorted(path.stem for path in (Path(__file__).parent / "systems").glob("*.py") if path.stem != "__init__")

Step = Callable[[], float]


def encoder_folder(name: str, scratch: Path) -> Path:
    """Return a model folder: the embedded encoder's, or one with random weights and the same tokenizer."""
    if name == MINI:
        return embedded_path(MINI)
    layers, width = (int(number) for number in name.split("x"))
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(embedded_path(MINI))
    config = BertConfig(
        vocab_size=len(tokenizer),
        num_hidden_layers=layers,
        hidden_size=width,
        num_attention_heads=width // 32,
        intermediate_size=4 * width,
        pad_token_id=tokenizer.pad_token_id,
    )
    BertForMaskedLM(config).save_pretrained(scratch / name)
    tokenizer.save_pretrained(scratch / name)
    return scratch / name


def milliseconds(pair: tuple[Step, Step], rounds: int, count: int, clock: Step) -> tuple[list[float], list[float]]:
    """Return the milliseconds per step of both callables, for each round."""
    taken: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds + 1):
        for step, times in zip(pair, taken, strict=True):
            began = clock()
            for _ in range(count):
                step()
            if number:
                times.append(1e3 * (clock() - began) / count)
    return taken


def rows(folder: Path, names: list[str], pairs: pl.DataFrame, rounds: int, count: int, clock: Step) -> Iterator[str]:
    """Yield a line of the table for each system."""
    for name in names:
        module = importlib.import_module(f"benchmarks.speed.systems.{name}")
        peer = getattr(module, "PEER", (module.__doc__ or "").splitlines()[0])
        pair = module.steps(folder, pairs)
        ours, theirs = milliseconds(pair, rounds, count, clock)
        # Ratios per round: a slow round slows both halves.
        ratio = statistics.median(b / a for a, b in zip(ours, theirs, strict=True))
        yield f"| {name} | {statistics.median(ours):,.0f} | {statistics.median(theirs):,.0f} | {ratio:.2f} | {peer} |"
        del pair
        gc.collect()


def main() -> int:
    """Print the table; no goals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="+", choices=SYSTEMS, default=SYSTEMS)
    parser.add_argument("--encoder", choices=ENCODERS)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--steps", type=int, help="steps of each a round")
    parser.add_argument("--cpu-time", action="store_true", help="of this process, where others share the machine")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    wanted = parser.parse_args()
    torch.set_num_threads(wanted.threads)
    hf_logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    hf_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    encoders = [wanted.encoder] if wanted.encoder else list(ENCODERS)[: 1 if wanted.quick else None]
    rounds, steps = wanted.rounds or (2 if wanted.quick else 5), wanted.steps or (1 if wanted.quick else 3)
    pairs, clock = sentences("nli"), time.process_time if wanted.cpu_time else time.perf_counter
    what = f"{'CPU' if wanted.cpu_time else 'wall'} time, batch 64, fp32, {wanted.threads} threads"
    print(f"{what}, {rounds} rounds of {steps} steps in turn; ratio: peer ÷ ours")
    with tempfile.TemporaryDirectory() as scratch:
        for name in encoders:
            print(f"\n### {name}\n\n| system | ours ms/step | peer ms/step | ratio | peer |\n|---|--:|--:|--:|---|")
            for line in rows(encoder_folder(name, Path(scratch)), wanted.only, pairs, rounds, steps, clock):
                print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
