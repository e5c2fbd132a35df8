"""Translation: ours compared with a plain `generate` loop and with direct calls of CTranslate2; parity of the backends.

    python -m benchmarks.speed.bench_translation                   ratios on opus-mt shapes and on an embedded model
    python -m benchmarks.speed.bench_translation --quick           the same with few sentences and one round
    python -m benchmarks.speed.bench_translation --parity          outputs of both backends on 2,000 real sentences
    python -m benchmarks.speed.bench_translation --orchestration   Prefect's overhead per shard

The opus-mt model has the real shapes and random weights that never produce the end token. So every variant decodes each
batch for as many steps as its longest source has pieces, and the output is meaningless. The embedded model ends by
itself, and its output is compared. Sentences are SNLI captions and hypotheses, held out from all training. Variants
alternate; a cell is the median over the rounds, with the spread (slowest / fastest). The loop, thirty times slower,
takes every fourth sentence; the others take all, so that none profits from an uneven division of batches among cores.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl

MINI, BACK = "marian-mini-en-mul", "marian-mini-mul-en"
TOKEN = ">>deu<<"
GOALS = {"ours, beam 1, int8": 20.0, "ours, beam 4, int8": 8.0}
DIRECT_GOAL, PARITY_GOAL, ORCHESTRATION_GOAL = 0.95, 0.99, 0.02
BUDGETS = (512, 1024, 2048)
LOOP_EVERY = 4

Variant = Callable[[], list[str]]


def sentences(count: int) -> list[str]:
    """Return premises and hypotheses in random order, as in a corpus."""
    from bsl.storage.assets.embedded import embedded_path

    captions = pl.read_parquet(embedded_path("held-out") / "snli.parquet")["text"]
    sample = pl.read_parquet(embedded_path("nli-sample") / "train.parquet")["hypothesis"]
    texts = pl.concat([captions.head(count), sample.head(count)]).drop_nulls().unique(maintain_order=True)
    return texts.sample(count, seed=1, shuffle=True).to_list()


def naive(folder: Path, texts: Sequence[str], *, forced: bool) -> Variant:
    """Translate as in tutorials: batches of 32 in input order, the model card's beam of 4, full precision."""
    import torch
    from transformers import GenerationConfig, MarianMTModel, MarianTokenizer

    tokenizer, model = MarianTokenizer.from_pretrained(folder), MarianMTModel.from_pretrained(folder).eval()  # type: ignore[no-untyped-call]
    pad = model.config.pad_token_id

    def run() -> list[str]:
        outputs: list[str] = []
        for start in range(0, len(texts), 32):
            inputs = tokenizer(
                [f"{TOKEN}{text}" for text in texts[start : start + 32]], return_tensors="pt", padding=True
            )
            limit = inputs.input_ids.shape[1] + 1 if forced else 256
            search = GenerationConfig(  # type: ignore[no-untyped-call]
                num_beams=4, max_new_tokens=limit, pad_token_id=pad, eos_token_id=0, decoder_start_token_id=pad,
                bad_words_ids=[[pad]], max_length=None,
            )  # fmt: skip
            with torch.inference_mode():
                found = model.generate(**inputs, generation_config=search)
            outputs += tokenizer.batch_decode(found, skip_special_tokens=True)
        return outputs

    return run


def ours(folder: Path, converted: Path, texts: Sequence[str], beam: int, *, forced: bool) -> Variant:
    """Translate with the backend as the pipeline calls it: text in, text out."""
    from bsl.models.translation.config import Resources, TranslatorConfig
    from bsl.models.translation.loading import load_translator
    from bsl.tasks.stage.device import cores

    limits = {"new_tokens_ratio": 1.0, "new_tokens_constant": 1} if forced else {}
    config = TranslatorConfig.model_validate(
        {"model": MINI, "source_lang": "en", "target_lang": "de", "target_token": TOKEN, "beam": beam} | limits
    )
    translator = load_translator(folder, config, Resources("cpu", cores()), converted)
    return lambda: [each.text for each in translator.translate(texts)]


def direct(folder: Path, converted: Path, texts: Sequence[str], beam: int, budget: int, *, forced: bool) -> Variant:
    """Call CTranslate2 directly: pieces prepared before, sorted batches, one thread each, no output text."""
    import ctranslate2

    from bsl.models.translation.batching import Vocabulary
    from bsl.models.translation.config import MINI as DIRECTIONS
    from bsl.tasks.stage.device import cores

    vocabulary = Vocabulary(folder, DIRECTIONS["en-de"])
    sources = sorted(map(vocabulary.names, vocabulary.encode(texts)), key=len, reverse=True)
    engine = ctranslate2.Translator(str(converted), compute_type="int8", inter_threads=cores(), intra_threads=1)

    def run() -> list[str]:
        if not forced:
            engine.translate_batch(sources, max_batch_size=budget, batch_type="tokens", beam_size=beam)
            return []
        pending, start = [], 0
        while start < len(sources):
            end = start + max(1, budget // len(sources[start]))
            limit = len(sources[start]) + 1
            pending += engine.translate_batch(
                sources[start:end], asynchronous=True, beam_size=beam, max_decoding_length=limit
            )
            start = end
        for each in pending:
            each.result()
        return []

    return run


def compare(name: str, folder: Path, converted: Path, count: int, rounds: int, *, forced: bool) -> bool:
    """Time all variants in turn and print them as a table; return whether the goals are met."""
    texts = sentences(count)
    loop = "generate loop, beam 4, fp32, batch 32, input order"
    variants: dict[str, Variant] = {loop: naive(folder, texts[::LOOP_EVERY], forced=forced)}
    for beam in (1, 4):
        variants[f"ours, beam {beam}, int8"] = ours(folder, converted, texts, beam, forced=forced)
        for budget in BUDGETS:
            by_hand = direct(folder, converted, texts, beam, budget, forced=forced)
            variants[f"CTranslate2 directly, beam {beam}, int8, {budget} tokens"] = by_hand
    for variant in list(variants.values())[1:]:
        variant()  # an engine's first call is slower than the others
    seconds: dict[str, list[float]] = {label: [] for label in variants}
    for _ in range(rounds):
        for label, variant in variants.items():
            started = time.perf_counter()
            variant()
            seconds[label].append(time.perf_counter() - started)
        seconds[loop][-1] *= LOOP_EVERY
    median = {label: statistics.median(times) for label, times in seconds.items()}
    baseline = median[loop]
    print(f"\n### {name}: {count} sentences, {rounds} rounds, {len(os.sched_getaffinity(0))} cores\n")
    print("| variant | sentences/s | x generate loop | spread |")
    print("|---|--:|--:|--:|")
    for label, value in median.items():
        spread = max(seconds[label]) / min(seconds[label])
        print(f"| {label} | {count / value:,.1f} | {baseline / value:.1f} | {spread:.2f} |")
    met = True
    for label, goal in GOALS.items():
        met &= _told(f"{label} / generate loop", baseline / median[label], goal)
    for beam in (1, 4):
        best = min(value for label, value in median.items() if label.startswith(f"CTranslate2 directly, beam {beam}"))
        met &= _told(f"ours / best direct, beam {beam}", best / median[f"ours, beam {beam}, int8"], DIRECT_GOAL)
    return met


def parity(count: int) -> bool:
    """Print the share of sentences that both backends translate alike, greedily, in fp32, in four directions."""
    from bsl.models.translation.config import MINI as DIRECTIONS
    from bsl.models.translation.config import Resources
    from bsl.models.translation.loading import load_translator
    from bsl.storage.assets.embedded import embedded_path

    met = True
    print("| direction | sentences | equal | share |\n|---|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as scratch:
        for name in ("en-de", "de-en", "en-fr", "fr-en"):
            config = DIRECTIONS[name].model_copy(update={"beam": 1, "precision": "fp32"})
            folder = embedded_path(config.model.removeprefix("embedded:"))
            pivot = name.replace("en", "").strip("-")
            pairs = pl.read_parquet(embedded_path("held-out") / f"tatoeba-{pivot}.parquet")
            texts = pairs[config.source_lang].head(count)
            outputs = []
            for backend in ("transformers", "ctranslate2"):
                engine = config.model_copy(update={"backend": backend})
                translator = load_translator(folder, engine, Resources("cpu", cores=1), Path(scratch) / folder.name)
                outputs.append([each.text for each in translator.translate(texts.to_list())])
            equal = sum(a == b for a, b in zip(*outputs, strict=True))
            print(f"| {name} | {len(texts):,} | {equal:,} | {equal / len(texts):.2%} |", flush=True)
            met &= equal / len(texts) >= PARITY_GOAL
    return met


def orchestration(shards: int, rows: int) -> bool:
    """Print the seconds per shard besides translation: reading, writing, hashing, publishing, Prefect."""
    from prefect import flow
    from prefect.testing.utilities import prefect_test_harness

    from bsl.models.corpus.normalize import sentence_ids
    from bsl.models.translation.config import MINI as DIRECTIONS
    from bsl.tasks.figures import ShardFigures
    from bsl.tasks.stage.run_context import RunContext
    from bsl.tasks.translation.translator import find_translator
    from tests.flows.test_translate import translate_all

    texts = pl.LazyFrame({"text": sentences(shards * rows)})
    frame = texts.select(sentence_ids(pl.col("text")).alias("sentence_id"), "text").unique("sentence_id")

    with tempfile.TemporaryDirectory() as folder, prefect_test_harness(server_startup_timeout=120):
        site = RunContext(store=f"{folder}/store", cache=f"{folder}/cache", device="cpu")
        hop = find_translator(site, DIRECTIONS["en-de"])

        @flow
        def one_hop(lazy: pl.LazyFrame) -> dict[str, object]:
            return translate_all(site, hop, lazy, rows)

        one_hop(frame.head(1))  # loads and converts the model
        started = time.perf_counter()
        one_hop(frame)
        wall = time.perf_counter() - started
        store = site.open_store()
        manifests = [store.manifest(part) for part in store.refs(f"translations/{hop.fingerprint}")]
    working = sum(each.figures_as(ShardFigures).seconds for each in manifests)
    beyond = (wall - working) / len(manifests)
    print(f"{len(manifests)} shards of {rows}: {wall:.1f} s, of it translating {working:.1f} s")
    print(f"{beyond * 1000:.0f} ms a shard beyond translating, {beyond / 10:.2%} of a shard of ten seconds")
    return beyond / 10 <= ORCHESTRATION_GOAL


def _told(what: str, value: float, goal: float) -> bool:
    print(f"{what}: {value:.2f}, goal {goal:g}: {'met' if value >= goal else 'MISSED'}")
    return value >= goal


def main() -> int:
    """Run the requested measurement; return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few sentences, one round")
    parser.add_argument("--parity", action="store_true", help="compare the outputs of both backends instead")
    parser.add_argument("--orchestration", action="store_true", help="time Prefect's part of a shard instead")
    arguments = parser.parse_args()
    if arguments.parity:
        return 0 if parity(100 if arguments.quick else 2000) else 1
    if arguments.orchestration:
        return 0 if orchestration(*((4, 64) if arguments.quick else (12, 256))) else 1

    import torch

    from benchmarks.device.fixtures import opus_shapes
    from bsl.models.translation.ctranslate import convert_once
    from bsl.storage.assets.embedded import embedded_path
    from bsl.tasks.stage.device import cores

    torch.set_num_threads(cores())
    few, many, rounds = (32, 128, 1) if arguments.quick else (512, 2048, 3)
    with tempfile.TemporaryDirectory() as scratch:
        opus = opus_shapes(embedded_path(MINI), Path(scratch) / "opus")
        met = []
        for name, folder, count, forced in (
            ("opus-mt shapes", opus, few, True), ("marian-mini-en-mul", embedded_path(MINI), many, False)
        ):  # fmt: skip
            converted = Path(scratch) / f"{folder.name}-converted"
            convert_once(folder, converted)
            met.append(compare(name, folder, converted, count, rounds, forced=forced))
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
