"""Pairs a second of BSL on BERT-base's shapes, and what torch's compiler and CUDA graphs would add."""

from __future__ import annotations

import itertools
import statistics
from typing import TYPE_CHECKING

import torch

from models.encoder.sentence_encoder import SentenceEncoder
from models.encoder.tokenization import tokenise
from models.objectives.config import BSLConfig
from models.objectives.registry import build_objective
from models.runtime.arithmetic import arithmetic
from models.training.batches import BatchOrder
from models.training.config import TrainingConfig
from models.training.metrics import Throughput
from models.training.optimizer import make_optimizer
from models.training.state import TrainingState
from models.training.step import take_step
from models.training.token_cache import open_token_cache
from tasks.diagnostics.benchmark.device_limits import seconds
from tasks.diagnostics.benchmark.fixtures import LENGTH, base_encoder
from tasks.diagnostics.benchmark.results import Rate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from models.objectives.objective import Objective
    from tasks.diagnostics.benchmark.device_limits import Card
    from tasks.diagnostics.benchmark.fixtures import Fixtures


def rates(fixtures: Fixtures, card: Card, steps: int, batches: Sequence[int] = (64,), **shape: int) -> Iterator[Rate]:
    """The product's step against a plain one; on a GPU the same captured as one graph."""
    for size in batches:
        config = _config(size)
        plain = _plain(fixtures, card, config, steps, **shape)
        yield plain
        for precision in card.precisions:
            wanted = config.model_copy(update={"precision": precision})
            name = f"training, {size} pairs a step, {precision}"
            yield _timed(name, fixtures, card, wanted, steps, plain.rate, **shape)
        if card.device.type == "cuda" and "bf16" in card.precisions:
            wanted = config.model_copy(update={"precision": "bf16"})
            yield _one_shape("one CUDA graph", fixtures, card, wanted, steps, plain.rate, **shape)


def compiled(fixtures: Fixtures, card: Card, steps: int, size: int, **shape: int) -> Rate:
    """A step whose passes torch's compiler made, against a plain one; compiling takes minutes and wants a compiler."""
    config = _config(size)
    plain = _plain(fixtures, card, config, steps, **shape)
    wanted = config.model_copy(update={"precision": "bf16"})
    return _one_shape("compiled by torch", fixtures, card, wanted, steps, plain.rate, **shape)


def _config(size: int) -> TrainingConfig:
    # The weights hardly move, so that all rounds time the same work.
    return TrainingConfig(
        objective=BSLConfig(), precision="fp32", lr=1e-6, warmup=0.0, batch_size=size, epochs=1000, collapse=None
    )


def live(
    fixtures: Fixtures, device: torch.device, config: TrainingConfig, **shape: int
) -> tuple[TrainingState, Callable[[int], int]]:
    """A run on BERT-base's shapes, and what takes its step of a number and says how many tokens that had."""
    encoder = SentenceEncoder(base_encoder(**shape), fixtures.tokenizer)
    net = build_objective(encoder.network, config.objective).to(device)
    run = TrainingState("", 10**9, net, make_optimizer(net, config))
    folder = fixtures.scratch / "tokens"
    folder.mkdir(exist_ok=True)
    data = open_token_cache(folder, fixtures.pairs.lazy(), encoder)
    order = BatchOrder(len(data), config, data.lengths_of)

    def step(number: int) -> int:
        batch = data.take(order.rows(number))
        take_step(run, batch, config)
        return len(batch.tokens.ids)

    return run, step


def _timed(
    name: str, fixtures: Fixtures, card: Card, config: TrainingConfig, steps: int, peer: float, **shape: int
) -> Rate:
    run, step = live(fixtures, card.device, config, **shape)
    numbers, tokens = itertools.count(1), list[int]()
    taken = seconds(lambda: tokens.append(step(next(numbers))), card.device, repeats=steps)
    return _rate(name, run.objective, card, config, statistics.fmean(tokens), taken, peer)


def _rate(
    name: str, net: Objective, card: Card, config: TrainingConfig, tokens: float, taken: float, peer: float | None
) -> Rate:
    flops = Throughput(net).flops(tokens, config.batch_size)
    share = flops / taken / card.flops[config.precision]
    rate = config.batch_size / taken
    limit = f"measured {config.precision} products"
    return Rate(name, rate, "pairs/s", share, limit, None if peer is None else rate / peer)


def _plain(fixtures: Fixtures, card: Card, config: TrainingConfig, steps: int, **shape: int) -> Rate:
    """A step as a script has it: each view padded, four passes in fp32, no fused optimizer, a loop of averages."""
    run, _ = live(fixtures, card.device, config, **shape)
    net: Objective = run.objective
    learning = net.learning_parameters()
    optimizer = torch.optim.AdamW(learning, lr=1e-6, foreach=False)
    tokens = tokenise(fixtures.tokenizer, fixtures.texts, LENGTH)
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

    taken = seconds(step, card.device, repeats=steps)
    name = f"training, {config.batch_size} pairs a step, fp32, a plain loop (peer)"
    return _rate(name, net, card, config, statistics.fmean(used), taken, None)


def _one_shape(
    how: str, fixtures: Fixtures, card: Card, config: TrainingConfig, steps: int, peer: float, **shape: int
) -> Rate:
    """Both passes of one padded batch, again and again, as a graph or compiled: what launches cost, at most."""
    run, _ = live(fixtures, card.device, config, **shape)
    net = run.objective
    tokens = tokenise(fixtures.tokenizer, fixtures.texts[: 2 * config.batch_size], LENGTH)
    ids, mask = (x.to(card.device) for x in tokens.padded(torch.arange(len(tokens)).numpy()))
    if how == "compiled by torch":
        for name in ("online", "target"):
            net.get_submodule(name).compile()

    def pass_over() -> None:
        with arithmetic(card.device, bf16=True):
            h1, h2 = net.online(ids, mask).chunk(2)
            with torch.no_grad():
                t1, t2 = net.target(ids, mask).chunk(2)  # type: ignore[operator]
            loss = net.loss(h1, h2, t1, t2)  # type: ignore[operator]
        loss.backward()

    both = _graph(pass_over, net).replay if how == "one CUDA graph" else pass_over
    learning = net.learning_parameters()

    def step() -> None:
        both()
        torch.nn.utils.clip_grad_norm_(learning, 1.0)
        run.optimizer.step()
        net.update_target(0.999)
        if both is pass_over:
            run.optimizer.zero_grad()

    name = f"training, {config.batch_size} pairs a step, bf16, both passes {how}, padded"
    return _rate(name, net, card, config, len(tokens.ids), seconds(step, card.device, repeats=steps), peer)


def _graph(pass_over: Callable[[], None], net: Objective) -> torch.cuda.CUDAGraph:
    aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            pass_over()
    torch.cuda.current_stream().wait_stream(aside)
    net.zero_grad(set_to_none=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        pass_over()
    return graph
