"""Measure sentences per second through BERT-base, and fits per second of SentEval's probes."""

from __future__ import annotations

import importlib.util
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from benchmarks.device.device_limits import seconds
from benchmarks.device.fixtures import base_encoder
from benchmarks.device.results import Rate
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.evaluation.config import ProbeConfig, ProbeProtocol
from bsl.models.evaluation.probe.problem import Part, make_problem
from bsl.models.evaluation.probe.search import probe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.device.device_limits import Card
    from benchmarks.device.fixtures import Fixtures
    from bsl.models.encoder.network import Encoder

WIDTH: Final = 768


def rates(fixtures: Fixtures, card: Card, sentences: int, **shape: int) -> Iterator[Rate]:
    """Time tokenising, then encoding in each precision of the card, and sentence-transformers if installed."""
    encoder = SentenceEncoder(base_encoder(**shape).eval(), fixtures.tokenizer)
    texts = (fixtures.texts * (1 + sentences // len(fixtures.texts)))[:sentences]
    before = seconds(partial(encoder.tokenize, texts), card.device, rounds=1)
    yield Rate("tokenising, on the CPU", sentences / before, "sentences/s")
    tokens = encoder.tokenize(texts)
    flops = 2 * matrices(encoder.network) * len(tokens.ids)
    for precision in card.precisions:
        bf16 = precision == "bf16"
        peer = _peer(fixtures, card, encoder, texts, bf16=bf16)
        if peer is not None:
            yield peer
        elapsed = seconds(partial(encoder.network.encode, tokens, device=card.device, bf16=bf16), card.device)
        share = flops / elapsed / card.flops[precision]
        ratio = None if peer is None else sentences / (before + elapsed) / peer.rate
        name = f"encoding, {precision}; the ratio with tokenising"
        yield Rate(name, sentences / elapsed, "sentences/s", share, f"measured {precision} products", ratio)


def matrices(encoder: Encoder) -> int:
    """Return the number of weights in matrix products; each costs two FLOP per token."""
    return sum(
        weight.numel() for name, weight in encoder.named_parameters() if weight.ndim == 2 and "embed" not in name
    )


def _peer(fixtures: Fixtures, card: Card, encoder: SentenceEncoder, texts: list[str], *, bf16: bool) -> Rate | None:
    """Time sentence-transformers on the same weights and texts, with default settings, including tokenising."""
    if importlib.util.find_spec("sentence_transformers") is None:
        return None
    import torch
    from sentence_transformers import SentenceTransformer

    folder = fixtures.scratch / "sentence-transformers"
    if not folder.exists():
        encoder.save(folder)
    model = SentenceTransformer(str(folder), device=str(card.device))
    if bf16:
        model = model.to(torch.bfloat16)
    some = texts[: max(256, len(texts) // 10)]
    elapsed = seconds(lambda: model.encode(some, show_progress_bar=False), card.device, rounds=1)
    return Rate(
        f"encoding, {'bf16' if bf16 else 'fp32'}, sentence-transformers (peer)", len(some) / elapsed, "sentences/s"
    )


def probes(card: Card, rows: int, folds: int = 10) -> Iterator[Rate]:
    """Time nested cross-validation by both protocols, for a task of MR's size and BERT-base's width."""
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, rows)
    features = random.normal(size=(rows, WIDTH)) + 0.15 * labels[:, None]
    config = ProbeConfig(folds=folds)
    parts = {"all": Part(features.astype(np.float32), labels, np.arange(rows))}
    problem = make_problem("bench", "nested", parts, ("0", "1"), folds=folds, seed=config.seed)
    protocols: tuple[tuple[ProbeProtocol, int], ...] = (("fast", 6), ("senteval", 4))
    for protocol, penalties in protocols:
        fits = folds * (penalties * folds + 1)
        elapsed = seconds(partial(probe, [problem], protocol, config, device=card.device), card.device, rounds=1)
        yield Rate(f"probe, {protocol}, {rows:,} × {WIDTH}", fits / elapsed, "fits/s")
