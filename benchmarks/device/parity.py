"""Check that device and CPU, packed and padded, bf16 and fp32, and resumed and undisturbed runs agree."""

from __future__ import annotations

import itertools
import warnings
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl
import torch

from benchmarks.device.fixtures import LENGTH, base_encoder
from benchmarks.device.results import at_least, at_most, holds, not_run
from benchmarks.device.training import live, warmed
from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.packing import packing_of
from bsl.models.encoder.sentence_encoder import SentenceEncoder, token_ids
from bsl.models.errors import InterruptedRunError, NonFiniteLossError
from bsl.models.objectives.bsl_config import BSLConfig
from bsl.models.training.batches import BatchOrder
from bsl.models.training.config import TrainingConfig
from bsl.models.training.loop import train
from bsl.models.training.snapshots import Execution

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from benchmarks.device.device_limits import Card
    from benchmarks.device.fixtures import Fixtures
    from bsl.models.training.loop import TrainingResult
    from bsl.tasks.diagnostics.finding import Finding

    Vectors = NDArray[np.float32]

ROUNDING: Final = 1e-4  # for fp32 in twelve layers with another order of summation
LEAST_COSINE: Final = 0.995  # between a sentence's vectors in bf16 and in fp32
ALIKE: Final = {"cuda": 256, "cpu": 64}  # sentences whose vectors are compared
STEPS: Final = 24  # of killed and poisoned runs: more than are read at once
POISONED: Final = 20
# No dropout, because its draws depend on the shape; a large epsilon suppresses gradients that are only rounding error.
PLAIN: Final[Mapping[str, Any]] = {"dropout": 0.0, "precision": "fp32", "lr": 1e-3, "eps": 1e-2}


def encoding(fixtures: Fixtures, card: Card) -> Iterator[Finding]:
    """Compare vectors of BERT-base: packed, padded, on the device, on the CPU, and in bf16 if the device has it."""
    device = card.device
    sentence_encoder = SentenceEncoder(base_encoder(dropout=0.0).eval(), fixtures.tokenizer)
    encoder, texts = sentence_encoder.network, fixtures.texts[: ALIKE[device.type]]
    on_cpu = sentence_encoder.encode(texts)
    here = on_cpu if device.type == "cpu" else sentence_encoder.encode(texts, device=device)
    if here is not on_cpu:
        difference = _largest_difference(on_cpu, here)
        yield at_most("vectors on the device and on the CPU, fp32, largest difference", difference, ROUNDING)
    tokens = sentence_encoder.tokenize(texts)
    rows = np.arange(len(tokens))
    packs = packing_of(encoder.transformer, tokens.pad_id) is not None
    yield holds(
        "BERT-base runs packed here", packs, "yes" if packs else "no: the next checks compare padded with padded"
    )
    with torch.inference_mode():
        padded = encoder(*(x.to(device) for x in tokens.padded(rows))).cpu().numpy()
    yield at_most("vectors packed and padded, fp32, largest difference", _largest_difference(padded, here), ROUNDING)
    yield at_most(
        "gradients packed and padded, fp32, largest difference by the largest gradient",
        _gradient_difference(fixtures, device),
        1e-3,
    )
    name = "smallest cosine of a sentence's vectors in bf16 and fp32"
    if "bf16" not in card.precisions:
        yield not_run(name, f"not used: {card.why_not_bf16}")
        return
    half = encoder.encode(tokens, device=device, bf16=True)
    cosines = (half * here).sum(1) / np.linalg.norm(half, axis=1) / np.linalg.norm(here, axis=1)
    yield at_least(name, float(cosines.min()), LEAST_COSINE)


def _largest_difference(one: Vectors, other: Vectors) -> float:
    return float(np.abs(one - other).max())


def _gradient_difference(fixtures: Fixtures, device: torch.device) -> float:
    encoder = base_encoder(dropout=0.0, num_hidden_layers=4).to(device)
    tokens = token_ids(fixtures.tokenizer, fixtures.texts[:64], LENGTH)
    weights = list(encoder.parameters())
    packed = encoder.embed(tokens, np.arange(64), 1 << 20)
    padded = encoder(*(x.to(device) for x in tokens.padded(np.arange(64))))
    direction = torch.randn_like(padded)
    found, expected = (
        torch.autograd.grad((vectors * direction).sum(), weights, allow_unused=True) for vectors in (packed, padded)
    )
    known = [(a, b) for a, b in zip(found, expected, strict=True) if a is not None and b is not None]
    return float(max((a - b).abs().max() for a, b in known) / max(b.abs().max() for _, b in known))


def stepping(fixtures: Fixtures, card: Card) -> Iterator[Finding]:
    """Check training steps: no step waits for the device, equal runs are equal, and resumed runs end the same."""
    device = card.device
    if device.type == "cuda":
        waits = _waits(fixtures, card)
        yield holds("no step of training waits for the device", not waits, waits or "none of 8")
    fixed, packed = (_run(fixtures, card, name, static=name == "fixed", **PLAIN) for name in ("fixed", "packed"))
    difference = _weight_difference(fixed, packed)
    yield at_most("weights after steps of fixed shape and packed ones, fp32, largest difference", difference, ROUNDING)
    undisturbed, again = (_run(fixtures, card, name) for name in ("undisturbed", "again"))
    yield at_most("weights of equal runs, largest difference", _weight_difference(undisturbed, again), 0.0)
    halfway = iter([False] * (STEPS // 2 - 1) + [True] + [False] * STEPS)
    try:
        _run(fixtures, card, "killed", halfway)
    except InterruptedRunError as stopped:
        resumed = _run(fixtures, card, "killed", halfway)
        name = f"weights of a run killed at step {stopped.step} of {STEPS} and resumed, largest difference"
        yield at_most(name, _weight_difference(undisturbed, resumed), 0.0)
    yield _poisoned(fixtures, device)


def _config(**fields: object) -> TrainingConfig:
    common = {
        "objective": BSLConfig(k=2),
        "precision": "fp32",
        "max_steps": STEPS,
        "batch_size": 32,
        "collapse": None,
        "epochs": 100,
    }
    return TrainingConfig.model_validate(common | fields)


def _run(
    fixtures: Fixtures,
    card: Card,
    name: str,
    stops: Iterator[bool] | None = None,
    *,
    static: bool | None = None,
    dropout: float = 0.1,
    **settings: object,
) -> TrainingResult:
    encoder = SentenceEncoder.load(fixtures.encoder, EncoderConfig(model="bench", max_length=LENGTH, dropout=dropout))
    work = fixtures.scratch / name
    work.mkdir(exist_ok=True)
    execution = Execution(
        work=work,
        device=card.device,
        save_every=STEPS // 4,
        should_stop=None if stops is None else lambda: next(stops),
        static_shapes=static,
    )
    config = _config(**{"precision": card.precisions[-1], "select": "last"} | settings)
    return train(fixtures.pairs.head(1024), encoder, config, execution=execution)


def _weight_difference(one: TrainingResult, other: TrainingResult) -> float:
    states = one.encoder.state_dict(), other.encoder.state_dict()
    return max(float((states[0][name].double() - states[1][name].double()).abs().max()) for name in states[0])


def _waits(fixtures: Fixtures, card: Card) -> str:
    """Return the code lines where a step makes the CPU wait, according to torch; empty if there are none."""
    objective = BSLConfig(target_norm="standardize", contrastive_weight=0.1)
    _, step = live(fixtures, card.device, _config(precision=card.precisions[-1], objective=objective))
    numbers = warmed(step, card.device)
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            for number in itertools.islice(numbers, 8):
                step(number)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    places = {f"{warning.filename.rpartition('/')[2]}:{warning.lineno}" for warning in seen}
    return ", ".join(sorted(places))


def _poisoned(fixtures: Fixtures, device: torch.device) -> Finding:
    """Put a token with a NaN vector into one pair: training must stop at its batch and name its row."""
    encoder = SentenceEncoder.load(fixtures.encoder, EncoderConfig(model="bench", max_length=LENGTH))
    texts, config = fixtures.texts[:1024], _config(select="last")
    pairs, tokens = pl.DataFrame({"text_1": texts, "text_2": texts}), encoder.tokenize(texts)
    # A step after those used by evaluations, and before the last.
    rows = BatchOrder(len(pairs), config, lambda rows: rows).rows(POISONED)
    counts = np.bincount(tokens.ids)
    row, ids = next((row, ids) for row in rows if counts[ids := tokens.take(np.array([row])).ids].min() == 1)
    rare = int(ids[counts[ids].argmin()])
    with torch.no_grad():
        encoder.network.transformer.get_input_embeddings().weight[rare] = float("nan")  # type: ignore[operator]
    name = f"a batch that gives NaN at step {POISONED} is named by step and rows"
    try:
        train(pairs, encoder, config, execution=Execution(device=device))
    except NonFiniteLossError as error:
        right = error.step == POISONED and row in error.rows
        return holds(name, right, f"step {error.step}, {len(error.rows)} rows")
    return holds(name, False, "training continued")
