"""Measure pieces per second of opus-mt's shapes by both engines, their agreement, and behaviour without memory."""

from __future__ import annotations

import itertools
import logging
from contextlib import contextmanager
from dataclasses import replace
from logging.handlers import BufferingHandler
from typing import TYPE_CHECKING, Any, Final

import torch
from transformers import GenerationConfig, MarianMTModel, MarianTokenizer

from benchmarks.device.device_limits import seconds
from benchmarks.device.fixtures import PIECES, TOKEN, direction, opus_shapes
from benchmarks.device.results import Rate, at_least, holds, not_run
from bsl.models.translation.config import Resources
from bsl.models.translation.loading import load_translator, precisions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.device.device_limits import Card
    from benchmarks.device.fixtures import Fixtures
    from bsl.models.translation.batching import BatchedTranslator
    from bsl.tasks.diagnostics.finding import Finding

ALIKE: Final = 0.99  # share of equal sentences: if two pieces are equally probable, rounding decides
ALIKE_ROUNDED: Final = 0.90  # the same, between precisions
ALIKE_INT8: Final = 0.25  # the same, between int8 and fp32: 0.63 to 0.70 with VNNI, 0.33 to 0.72 without
PLAIN: Final = {"cuda": "fp16", "cpu": "fp32"}  # precision of transformers
FAST: Final = {"cuda": ("fp16", "int8"), "cpu": ("int8",)}  # precisions of CTranslate2
SPARE: Final = 3 << 28  # bytes left to a translator in the out-of-memory check
ENCODER: Final = 6 * (4 * 512 * 512 + 2 * 512 * 2048)  # weights of opus-mt's products per source piece
DECODER: Final = 6 * (8 * 512 * 512 + 2 * 512 * 2048) + 512 * PIECES  # and per target piece


def parity(fixtures: Fixtures, device: torch.device, count: int) -> Iterator[Finding]:
    """Compare translations of a small trained model: device and CPU, both engines, several precisions."""
    texts, place = fixtures.texts[:count], str(device)
    expected = _translated(fixtures, "cpu", texts, "transformers", "fp32")
    here = expected
    if device.type == "cuda":
        here = _translated(fixtures, place, texts, "transformers", "fp32")
        yield at_least("equal translations on the device and on the CPU, fp32", _equal_share(expected, here), ALIKE)
        rounded = _translated(fixtures, place, texts, "transformers", "fp16")
        yield at_least("equal translations in fp16 and fp32", _equal_share(expected, rounded), ALIKE_ROUNDED)
    name = "equal translations by CTranslate2 and transformers, fp32"
    try:
        other = _translated(fixtures, place, texts, "ctranslate2", "fp32")
    except (RuntimeError, ValueError) as error:
        yield not_run(name, f"CTranslate2 does not run here: {error}")
    else:
        yield at_least(name, _equal_share(expected, other), ALIKE)
        for precision in FAST[device.type]:
            yield _rounded(fixtures, place, texts, other, precision)
    if device.type == "cuda":
        yield _without_memory(fixtures, device, texts, here)


def _rounded(fixtures: Fixtures, place: str, texts: list[str], expected: list[str], precision: str) -> Finding:
    """Compare CTranslate2 in a precision with itself in fp32."""
    name = f"equal translations by CTranslate2 in {precision} and in fp32"
    try:
        found = _translated(fixtures, place, texts, "ctranslate2", precision)
    except ValueError as error:
        return not_run(name, str(error))
    return at_least(name, _equal_share(expected, found), ALIKE_INT8 if precision == "int8" else ALIKE_ROUNDED)


def _translated(fixtures: Fixtures, device: str, texts: list[str], backend: str, precision: str) -> list[str]:
    if precision not in (offered := precisions(backend, device)):  # type: ignore[arg-type]
        raise ValueError(f"{backend} offers {', '.join(offered) or 'nothing'} on {device}")
    with _restored_threads():
        translator = _loaded(fixtures, device, backend=backend, precision=precision)
        return [translation.text for translation in translator.translate(texts)]


@contextmanager
def _restored_threads() -> Iterator[None]:
    """Restore torch's number of threads: CTranslate2 sets OpenMP's, which torch shares."""
    threads = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _loaded(fixtures: Fixtures, device: str, budget: int | None = None, **fields: object) -> BatchedTranslator:
    config = direction(**fields)  # type: ignore[arg-type]
    resources = Resources(device, torch.get_num_threads())
    return load_translator(fixtures.translator, config, resources, fixtures.scratch / "converted", budget)


def _equal_share(one: list[str], other: list[str]) -> float:
    return sum(a == b for a, b in zip(one, other, strict=True)) / len(one)


def _without_memory(fixtures: Fixtures, device: torch.device, texts: list[str], expected: list[str]) -> Finding:
    """Translate the same sentences many times in one batch, with too little memory for it."""
    name = "a batch that does not fit the memory is halved, and nothing is lost"
    repeats = 20_000 // len(texts)
    translator = _loaded(fixtures, str(device), 1 << 24, backend="transformers", precision="fp32")
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(device).total_memory
    log, listener = logging.getLogger("bsl.models.translation.batching"), BufferingHandler(10_000)
    log.addHandler(listener)
    with torch.cuda.device(device):  # the function takes no device without a number
        torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_allocated() + SPARE) / total)
        try:
            found = [translation.text for translation in translator.translate(texts * repeats)]
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0)
            log.removeHandler(listener)
    same = _equal_share(found, expected * repeats)
    halved = sum("out of memory" in record.getMessage() for record in listener.buffer)
    return holds(name, halved > 0 and same >= ALIKE, f"{halved} times, {same:.2%} equal")


def rates(fixtures: Fixtures, card: Card, sentences: int, **smaller: int) -> Iterator[Rate]:
    """Time greedy search and beam 4, and a plain `generate` loop; outputs are as long as their source."""
    folder = fixtures.scratch / "opus"
    if not folder.exists():
        opus_shapes(fixtures.translator, folder, **smaller)
    texts = (fixtures.texts * (1 + sentences // len(fixtures.texts)))[:sentences]
    plain = PLAIN[card.device.type]
    ways = [("transformers", plain), *(("ctranslate2", fast) for fast in FAST[card.device.type])]
    peer = _loop(folder, card, texts[: max(64, len(texts) // 32)], plain)
    yield peer
    for (backend, precision), beam in itertools.product(ways, (1, 4)):
        if precision in precisions(backend, str(card.device)):  # type: ignore[arg-type]
            with _restored_threads():
                found = _rate(folder, fixtures, card, texts, backend, precision, beam)
            yield replace(found, ratio=found.rate / peer.rate)


def _rate(
    folder: Path, fixtures: Fixtures, card: Card, texts: list[str], backend: str, precision: str, beam: int
) -> Rate:
    config = direction(beam, backend=backend, precision=precision, new_tokens_ratio=1.0, new_tokens_constant=1)
    resources = Resources(str(card.device), torch.get_num_threads())
    translator = load_translator(folder, config, resources, fixtures.scratch / "converted-opus")
    some = texts if beam == 1 else texts[: len(texts) // 4]
    sources = translator.vocabulary.encode(some)
    pieces = 0

    def work() -> None:
        nonlocal pieces
        pieces = sum(translation.n_tokens for translation in translator.translate(some))

    elapsed = seconds(work, card.device, rounds=1)
    flops = 2 * ENCODER * sum(map(len, sources)) + 2 * DECODER * pieces * beam
    limit = precision if precision in card.flops else "fp16"  # int8 products are not measured on a GPU
    share = flops / elapsed / card.flops[limit]
    name = f"translation, {backend}, beam {beam}, {precision}, {len(some):,} sentences"
    return Rate(name, pieces / elapsed, "pieces/s", share, f"measured {limit} products")


def _loop(folder: Path, card: Card, texts: list[str], precision: str) -> Rate:
    """Time translation as in a tutorial: batches of 32 in input order, beam 4."""
    tokenizer = MarianTokenizer.from_pretrained(folder)
    dtype = torch.float16 if precision == "fp16" else torch.float32
    model: Any = MarianMTModel.from_pretrained(folder, dtype=dtype)
    model.eval().to(card.device)
    pad, pieces = model.config.pad_token_id, 0

    def work() -> None:
        nonlocal pieces
        pieces = 0
        for start in range(0, len(texts), 32):
            batch = [f"{TOKEN}{text}" for text in texts[start : start + 32]]
            inputs = tokenizer(batch, return_tensors="pt", padding=True).to(card.device)
            search = GenerationConfig(  # type: ignore[no-untyped-call]
                num_beams=4, max_new_tokens=inputs.input_ids.shape[1] + 1, pad_token_id=pad, eos_token_id=0,
                decoder_start_token_id=pad, bad_words_ids=[[pad]], max_length=None,
            )  # fmt: skip
            with torch.inference_mode():
                model.generate(**inputs, generation_config=search)
            pieces += int(inputs.attention_mask.sum()) + len(batch)

    elapsed = seconds(work, card.device, rounds=1)
    return Rate(f"translation, generate loop, beam 4, {precision} (peer)", pieces / elapsed, "pieces/s")
