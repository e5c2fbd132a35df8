"""Measure pairs per second of BSL on BERT-base's shapes, and the gain of captured steps."""

from __future__ import annotations

import itertools
import statistics
from typing import TYPE_CHECKING

import torch

from benchmarks.device.device_limits import seconds
from benchmarks.device.fixtures import LENGTH, base_encoder
from benchmarks.device.results import Rate
from bsl.models.encoder.sentence_encoder import SentenceEncoder, token_ids
from bsl.models.objectives.bsl_config import BSLConfig
from bsl.models.training.batches import BatchOrder
from bsl.models.training.config import TrainingConfig
from bsl.models.training.metrics import Throughput
from bsl.models.training.optimizer import make_optimizer, take_step
from bsl.models.training.snapshots import TrainingState
from bsl.models.training.static_steps import compute_for
from bsl.models.training.token_cache import open_token_cache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.device.device_limits import Card
    from benchmarks.device.fixtures import Fixtures
    from bsl.models.objectives.objective import Objective

WARM = 60  # steps after which a GPU has captured nearly every shape


def rates(fixtures: Fixtures, card: Card, steps: int, size: int, **shape: int) -> Iterator[Rate]:
    """Time the product's training step on `size` pairs against a plain one; on a GPU, captured and not captured."""
    config = TrainingConfig(  # the weights hardly change, so that all rounds time the same work
        objective=BSLConfig(), precision="fp32", lr=1e-6, warmup=0.0, batch_size=size, epochs=1000, collapse=None
    )
    plain = _plain(fixtures, card, config, steps, **shape)
    yield plain
    for precision, static in itertools.product(card.precisions, _ways(card.device)):
        own_config = config.model_copy(update={"precision": precision})
        yield _timed(fixtures, card, own_config, steps, plain.rate, static=static, **shape)


def _ways(device: torch.device) -> tuple[bool, ...]:
    """Return the choices for fixed shapes; they only help with a CUDA graph."""
    return (True, False) if device.type == "cuda" else (False,)


def live(
    fixtures: Fixtures, device: torch.device, config: TrainingConfig, *, static: bool | None = None, **shape: int
) -> tuple[TrainingState, Callable[[int], int]]:
    """Return a run on BERT-base's shapes, and a function that takes step `number` and returns its token count."""
    encoder = SentenceEncoder(base_encoder(**shape), fixtures.tokenizer)
    net = config.objective.build(encoder.network).to(device)
    run = TrainingState("", 10**9, net, make_optimizer(net, config))
    folder = fixtures.scratch / "tokens"
    folder.mkdir(exist_ok=True)
    data = open_token_cache(folder, fixtures.pairs.lazy(), encoder)
    order = BatchOrder(len(data), config, data.lengths_of)
    computed_by = compute_for(run, config, data, order, static=static)

    def step(number: int) -> int:
        batch = data.take(order.rows(number))
        take_step(run, batch, config, computed_by)
        return len(batch.tokens.ids)

    return run, step


def warmed(step: Callable[[int], int], device: torch.device) -> Iterator[int]:
    """Run steps until a GPU has captured nearly all shapes; return the numbers of the remaining steps."""
    first = WARM if device.type == "cuda" else 0
    for number in range(1, first + 1):
        step(number)
    return itertools.count(first + 1)


def _timed(
    fixtures: Fixtures, card: Card, config: TrainingConfig, steps: int, peer: float, *, static: bool, **shape: int
) -> Rate:
    run, step = live(fixtures, card.device, config, static=static, **shape)
    numbers, tokens = (warmed(step, card.device) if static else itertools.count(1)), list[int]()
    elapsed = seconds(lambda: tokens.append(step(next(numbers))), card.device, repeats=steps)
    name = f"training, {config.batch_size} pairs a step, {config.precision}{', captured' if static else ''}"
    return _rate(name, run.objective, card, config, statistics.fmean(tokens), elapsed, peer)


def _rate(
    name: str, net: Objective, card: Card, config: TrainingConfig, tokens: float, elapsed: float, peer: float | None
) -> Rate:
    flops = Throughput(net).flops(tokens, config.batch_size)
    share = flops / elapsed / card.flops[config.precision]
    rate = config.batch_size / elapsed
    limit = f"measured {config.precision} products"
    return Rate(name, rate, "pairs/s", share, limit, None if peer is None else rate / peer)


def _plain(fixtures: Fixtures, card: Card, config: TrainingConfig, steps: int, **shape: int) -> Rate:
    """Time a step as in a simple script: padded views, four passes in fp32, no fused optimizer, averages by a loop."""
    run, _ = live(fixtures, card.device, config, static=False, **shape)
    net: Objective = run.objective
    learning = net.learning_parameters()
    optimizer = torch.optim.AdamW(learning, lr=1e-6, foreach=False)
    tokens = token_ids(fixtures.tokenizer, fixtures.texts, LENGTH)
    starts, used = itertools.count(), list[int]()

    def step() -> None:
        first = next(starts) * config.batch_size % (len(tokens) - 2 * config.batch_size)
        rows = torch.arange(first, first + 2 * config.batch_size).numpy()
        used.append(int(tokens.lengths_of(rows).sum()))
        views = [tokens.padded(half) for half in (rows[: config.batch_size], rows[config.batch_size :])]
        placed = [tuple(x.to(card.device) for x in view) for view in views]
        h1, h2 = (net.online(*view) for view in placed)
        with torch.no_grad():
            t1, t2 = (net.target(*view) for view in placed)  # type: ignore[operator]
        loss = net.loss(h1, h2, t1, t2)  # type: ignore[operator]
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learning, 1.0, foreach=False)
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            for mine, theirs in zip(net.target.parameters(), net.online.parameters(), strict=True):  # type: ignore[union-attr]
                mine.mul_(0.999).add_(theirs, alpha=0.001)

    elapsed = seconds(step, card.device, repeats=steps)
    name = f"training, {config.batch_size} pairs a step, fp32, a plain loop (peer)"
    return _rate(name, net, card, config, statistics.fmean(used), elapsed, None)
