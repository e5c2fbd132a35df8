"""Training: useful tokens per second of the product's step, the released code's, and sentence-transformers'.

    python -m benchmarks.speed.bench_training                both shapes, both length profiles, 5 rounds: about an hour
    python -m benchmarks.speed.bench_training --quick        the small shape on NLI lengths, 2 rounds: minutes
    python -m benchmarks.speed.bench_training --flat         10,000 tiny steps: growth of memory, drift of the step time

training_peers.py restates the released step plainly (two padded online forwards and two of the target, a newly
allocated target, AdamW in a loop, fp32). Times count only if all compute the same loss. Variants alternate in one
process. A useful token is not padding, so that batches of different lengths compare. The table has ratios and
the share of this machine's matrix multiplication rate at the shape: operations that the method needs for useful tokens,
without attention's own products. Weights are random; shapes, lengths and batch size are real.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import AutoTokenizer

from benchmarks.device.device_limits import measured
from benchmarks.device.encoding import matrices
from benchmarks.speed.training_peers import (
    RATE,
    released_loss,
    released_steps,
    sentence_transformers_steps,
)
from benchmarks.speed.training_work import PROFILES, SHAPES, encoder_of, sentences
from bsl.flows.recipes.paper import RELEASED_TRAINING
from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.objectives.bsl import BSL
from bsl.models.objectives.bsl_config import BSLConfig
from bsl.models.objectives.objective import Objective
from bsl.models.runtime.device import arithmetic
from bsl.models.training.batches import BatchOrder
from bsl.models.training.config import TrainingConfig
from bsl.models.training.loop import train
from bsl.models.training.metrics import Throughput
from bsl.models.training.optimizer import make_optimizer, take_step
from bsl.models.training.snapshots import Execution, TrainingState
from bsl.models.training.token_cache import TokenCache, open_token_cache
from bsl.storage.assets.embedded import embedded_path

GOALS = {"fp32, random batches": 2.4, "bf16, random batches": 4.5, "bf16, length buckets": 7.0}
GOAL_ST, GOAL_LOSS, GOAL_GROWTH, GOAL_DRIFT = 1.3, 1e-6, 0.05, 0.10
BUCKET = 32


@dataclass
class Goal:
    """A result and its bound."""

    name: str
    found: float
    bound: float
    at_most: bool = False

    @property
    def met(self) -> bool:
        return self.found <= self.bound if self.at_most else self.found >= self.bound


@dataclass
class Variant:
    """Trains on batch number i and returns its number of useful tokens.

    Attributes:
        limit: Useful tokens per second at the machine's matrix multiplication rate.
    """

    name: str
    step: Callable[[int], int]
    limit: float


def product_steps(
    run: TrainingState, data: TokenCache, order: BatchOrder, config: TrainingConfig
) -> Callable[[int], int]:
    """Return the product's step."""

    def step(number: int) -> int:
        batch = data.take(order.rows(number))
        take_step(run, batch, config)
        return len(batch.tokens.ids)

    return step


def live(net: Objective, config: TrainingConfig) -> TrainingState:
    return TrainingState("", 10**9, net, make_optimizer(net, config))


def released_net(shape: str, profile: str, dropout: float = 0.1) -> BSL:
    """Return a new network with the released settings."""
    net = RELEASED_TRAINING.objective.build(encoder_of(shape, profile, dropout))
    assert isinstance(net, BSL)
    return net


def difference(shape: str, profile: str, data: TokenCache, order: BatchOrder) -> tuple[float, float]:
    """Compare the product's step with the released one on one batch without dropout.

    Returns:
        |Δ| of the loss in fp32, scaled as equation 2; and the largest |Δ| of a gradient in float64 relative to the
        largest gradient (in fp32, batch normalisation of random weights' similar vectors would show only rounding).
    """
    torch.manual_seed(1)
    net = released_net(shape, profile, dropout=0.0)
    batch = data.take(order.rows(1))
    with torch.no_grad():
        with arithmetic(net.online.device, bf16=False):
            ours = net(batch)
        loss = float(released_loss(net, batch)) - float(ours)
    learning = net.double().learning_parameters()
    wanted = torch.autograd.grad(released_loss(net, batch), learning)
    found = torch.autograd.grad(net(batch), learning)
    largest = max(float(gradient.abs().max()) for gradient in wanted)
    return abs(loss) / 4, max(float((x - y).abs().max()) for x, y in zip(found, wanted, strict=True)) / largest


def compare(variants: list[Variant], rounds: int, steps: int) -> dict[str, list[float]]:
    """Return useful tokens per second of each variant in each round; a first round warms up and does not count."""
    rates: dict[str, list[float]] = {variant.name: [] for variant in variants}
    for number in range(rounds + 1):
        for variant in variants:
            began = time.perf_counter()
            tokens = sum(variant.step(number * steps + i + 1) for i in range(steps))
            if number:
                rates[variant.name].append(tokens / (time.perf_counter() - began))
    return rates


def flops_a_token(net: Objective, data: TokenCache, order: BatchOrder) -> float:
    """Return the method's operations per useful token, averaged over some batches."""
    batches = [data.take(order.rows(number)) for number in range(1, 33)]
    tokens = sum(len(batch.tokens.ids) for batch in batches)
    return Throughput(net).flops(tokens, sum(map(len, batches))) / tokens


def table(title: str, variants: list[Variant], rates: dict[str, list[float]], base: str) -> dict[str, float]:
    """Print the table; return each variant's median over rounds of its ratio to the base."""
    limits = {variant.name: variant.limit for variant in variants}
    ratios = {
        name: statistics.median(one / other for one, other in zip(found, rates[base], strict=True))
        for name, found in rates.items()
    }
    head = ["variant", "useful tokens/s (median)", "spread (max/min)", f"x {base}", "of the machine's products"]
    print(f"\n### {title}\n\n| {' | '.join(head)} |\n|---|--:|--:|--:|--:|")
    for name, found in rates.items():
        median = statistics.median(found)
        figures = f"{median:,.0f} | {max(found) / min(found):.2f} | {ratios[name]:.2f} | {median / limits[name]:.0%}"
        print(f"| {name} | {figures} |", flush=True)
    return ratios


def measure(shape: str, profile: str, rounds: int, steps: int) -> Iterator[Goal]:
    """Print the tables of one shape and one profile, and yield the goals."""
    frame = sentences(profile)
    tokenizer = AutoTokenizer.from_pretrained(embedded_path("bert-mini"))
    fp32 = RELEASED_TRAINING.model_copy(update={"lr": RATE, "warmup": 0.0})
    bf16, buckets = (fp32.model_copy(update=u) for u in ({"precision": "bf16"}, {"length_buckets": BUCKET}))
    with tempfile.TemporaryDirectory() as folder:
        data = open_token_cache(Path(folder), frame.lazy(), SentenceEncoder(encoder_of(shape, profile), tokenizer))
        random, sorted_ = (BatchOrder(len(data), config, data.lengths_of) for config in (fp32, buckets))
        loss, gradient = difference(shape, profile, data, random)
        print(f"\n{shape}, {profile}: loss differs by {loss:.1e}, gradients in float64 by {gradient:.1e};", end=" ")
        print(_padding(data, random))
        yield Goal(f"{shape} {profile}: difference of the loss", loss, GOAL_LOSS, at_most=True)

        card = measured(torch.device("cpu"), (1024, SHAPES[shape][1], 4 * SHAPES[shape][1]))
        print(", ".join(f"{name} {flops / 1e9:,.0f} GFLOP/s" for name, flops in card.flops.items()), flush=True)
        run = live(fp32.objective.build(encoder_of(shape, profile)), fp32)
        limits = {name: flops / flops_a_token(run.objective, data, random) for name, flops in card.flops.items()}
        released = released_steps(released_net(shape, profile), data, random)
        variants = [
            Variant("released", released, limits["fp32"]),
            Variant("fp32, random batches", product_steps(run, data, random, fp32), limits["fp32"]),
        ]
        if "bf16" in card.precisions:
            variants += [
                Variant("bf16, random batches", product_steps(run, data, random, bf16), limits["bf16"]),
                Variant("bf16, length buckets", product_steps(run, data, sorted_, bf16), limits["bf16"]),
            ]
        else:
            print(f"bf16: not used, {card.why_not_bf16}")
        title = f"{shape}, {profile} lengths, released predictor"
        ratios = table(title, variants, compare(variants, rounds, steps), "released")
        yield from (
            Goal(f"{shape} {profile}: {name}", ratios[name], goal) for name, goal in GOALS.items() if name in ratios
        )
        del variants, run, released
        gc.collect()

        config = TrainingConfig(precision="fp32", lr=RATE, warmup=0.0)
        encoder = encoder_of(shape, profile)
        peer = sentence_transformers_steps(encoder, frame, random, Path(folder))
        run = live(config.objective.build(encoder), config)
        rivals = [  # the peer trains one network, without a target
            Variant("sentence-transformers", peer, card.flops["fp32"] / (6 * matrices(encoder))),
            Variant(
                "BSL, paper preset",
                product_steps(run, data, random, config),
                card.flops["fp32"] / flops_a_token(run.objective, data, random),
            ),
        ]
        title = f"{shape}, {profile} lengths, fp32"
        ratios = table(title, rivals, compare(rivals, rounds, steps), "sentence-transformers")
        yield Goal(f"{shape} {profile}: BSL over sentence-transformers", ratios["BSL, paper preset"], GOAL_ST)


def _padding(data: TokenCache, order: BatchOrder) -> str:
    batches = [data.take(order.rows(number)).tokens.lengths.reshape(2, -1) for number in range(1, 33)]
    padded = sum(int(view.max()) * len(view) for lengths in batches for view in lengths)
    return f"padded ÷ useful tokens {padded / sum(int(lengths.sum()) for lengths in batches):.2f}"


def flat(steps: int) -> Iterator[Goal]:
    """Run many tiny steps through the real loop, with snapshots and evaluations, and yield the goals."""
    from tests.tiny_encoder import write_tiny

    seen: list[tuple[int, float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        encoder = SentenceEncoder.load(write_tiny(Path(folder) / "model"), EncoderConfig(model="tiny", max_length=24))
        config = TrainingConfig(
            precision="fp32", objective=BSLConfig(k=2), batch_size=16, epochs=10**3, max_steps=steps, collapse=None
        )
        train(
            sentences("nli"),
            encoder,
            config,
            execution=Execution(
                work=Path(folder) / "work",
                save_every=max(1, steps // 20),
                on_progress=lambda done, *_: seen.append((done, time.perf_counter(), _rss_mib())),
            ),
        )
    settled = [entry for entry in seen if entry[0] >= steps // 10]
    growth = settled[-1][2] / settled[0][2] - 1
    middle = len(settled) // 2
    early, late = (_step_s(part) for part in (settled[: middle + 1], settled[middle:]))
    print(
        f"{steps:,} steps: RSS {settled[0][2]:.0f} → {settled[-1][2]:.0f} MiB after the first tenth ({growth:+.1%});",
        end=" ",
    )
    print(f"step {1e3 * early:.2f} ms in the first half, {1e3 * late:.2f} ms in the second ({late / early - 1:+.1%})")
    yield Goal("growth of RSS", growth, GOAL_GROWTH, at_most=True)
    yield Goal("drift of the step time", late / early - 1, GOAL_DRIFT, at_most=True)


def _step_s(part: list[tuple[int, float, float]]) -> float:
    """Return the median step time between two reports: snapshots and evaluations fall between few of them."""
    return statistics.median((b[1] - a[1]) / (b[0] - a[0]) for a, b in itertools.pairwise(part))


def _rss_mib() -> float:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def main() -> int:
    """Return exit status 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--flat", action="store_true")
    parser.add_argument("--shape", choices=list(SHAPES))
    parser.add_argument("--profile", choices=list(PROFILES))
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--steps", type=int, help="batches of each variant a round, or steps of --flat")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    wanted = parser.parse_args()
    torch.set_num_threads(wanted.threads)
    if wanted.flat:
        results = list(flat(wanted.steps or (1000 if wanted.quick else 10_000)))
    else:
        shapes = [wanted.shape] if wanted.shape else list(SHAPES)[: 1 if wanted.quick else None]
        profiles = [wanted.profile] if wanted.profile else list(PROFILES)[: 1 if wanted.quick else None]
        rounds, steps = wanted.rounds or (2 if wanted.quick else 5), wanted.steps or (1 if wanted.quick else 3)
        print(f"batch 64, {wanted.threads} threads, {rounds} rounds of {steps} batches, variants in turn")
        results = [row for s in shapes for p in profiles for row in measure(s, p, rounds, steps)]
    print("\n| goal | bound | found | met |\n|---|--:|--:|---|")
    for goal in results:
        sign = "≤" if goal.at_most else "≥"
        print(f"| {goal.name} | {sign} {goal.bound:g} | {goal.found:.3g} | {'yes' if goal.met else 'no'} |")
    return 0 if all(goal.met for goal in results) else 1


if __name__ == "__main__":
    sys.exit(main())
