"""Ingest: NLI-shaped JSON lines to a deduplicated, published corpus, compared with datasets.map and bare Polars.

    python -m benchmarks.speed.bench_ingest                  1 M rows, three variants interleaved, ratios in one run
    python -m benchmarks.speed.bench_ingest --memory         10 M rows, ours only: peak memory
    python -m benchmarks.speed.bench_ingest --hub            5 M rows from a stand-in Hub, ours only: peak memory

Every variant runs in its own process, so that its peak memory (VmHWM) is its own. Times count only if all variants find
the same sentence ids. Imports are not timed. Text is pseudo-words with NLI's lengths; each premise occurs three times,
as in SNLI.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypedDict

import numpy as np
import polars as pl

GOAL_DATASETS, GOAL_POLARS, GOAL_MIB, GOAL_HUB_MIB = 20.0, 0.8, 2048.0, 1024.0
HUB_SET = "someone/sentences"
CHUNK = 300_000
SCHEMA = {"gold_label": pl.String, "sentence1": pl.String, "sentence2": pl.String}


def write_rows(path: Path, rows: int) -> None:
    """Write NLI-shaped JSON lines, about 270 bytes per row."""
    random = np.random.default_rng(7)
    words = _words(random)
    with path.open("wb") as file:
        for start in range(0, rows, CHUNK):
            count = min(CHUNK, rows - start)
            premises = _sentences(random, words, -(-count // 3), 14, 6).gather(np.arange(count) // 3)
            labels = random.choice(
                ["entailment", "neutral", "contradiction", "-"], count, p=[0.333, 0.333, 0.3326, 0.0014]
            )
            number = pl.int_range(start, start + count, eager=True).cast(pl.String)
            frame = pl.DataFrame({"gold_label": labels, "pairID": number + ".jpg#0r1n", "captionID": number + ".jpg#0"})
            hypotheses = _sentences(random, words, count, 8, 3)
            frame.with_columns(premises.alias("sentence1"), hypotheses.alias("sentence2")).write_ndjson(file)


def _words(random: np.random.Generator) -> pl.Series:
    letters = np.array(list("etaoinshrdlucmfwypvbgk"))
    return pl.Series(["".join(random.choice(letters, size)) for size in random.integers(2, 9, 20_000)])


def _sentences(random: np.random.Generator, words: pl.Series, count: int, mean: int, spread: int) -> pl.Series:
    """Return sentences of Zipf-distributed words, `mean` ± `spread` words each."""
    lengths = np.clip(random.normal(mean, spread, count).round().astype(int), 2, 60)
    picks = np.minimum(random.zipf(1.25, int(lengths.sum())), len(words)) - 1
    row = np.repeat(np.arange(count), lengths)
    joined = (
        pl.DataFrame({"row": row, "word": words.gather(picks)}).group_by("row", maintain_order=True).agg(pl.col("word"))
    )
    return joined["word"].list.join(" ").str.to_titlecase() + "."


def ours(source: Path, out: Path) -> Iterator[pl.Series]:
    """Run the stage itself, without a Prefect server."""
    from bsl.storage.sources.sources import SourceSpec
    from bsl.tasks.corpus.config import IngestConfig
    from bsl.tasks.corpus.ingest import ingest, locate_sources
    from bsl.tasks.stage.run_context import RunContext

    spec = SourceSpec(path=str(source)) if source.exists() else SourceSpec(dataset=HUB_SET)
    config = IngestConfig(sources=(spec,))
    site = RunContext(store=str(out))
    yield pl.Series(dtype=pl.UInt64)
    ref = ingest(site, sources=locate_sources(site, config), config=config)
    yield pl.Series(dtype=pl.UInt64)
    yield from _parquet_ids(sorted((out / ref.path).glob("*.parquet")))


def bare_polars(source: Path, out: Path) -> Iterator[pl.Series]:
    """Run the same query on Polars' streaming engine: no counts, no checks, no artifact."""
    from bsl.models.corpus.normalize import normalize, sentence_ids

    yield pl.Series(dtype=pl.UInt64)
    rows = pl.scan_ndjson(source, schema=SCHEMA)
    texts = rows.unpivot(on=["sentence1", "sentence2"], value_name="text")
    kept = texts.select(normalize(pl.col("text"))).filter(pl.col("text").str.len_chars().is_between(1, 2000))
    named = kept.select(
        sentence_ids(pl.col("text")).alias("sentence_id"), "text", source=pl.lit("nli"), lang=pl.lit("en")
    )
    query = named.unique("sentence_id", keep="any").sort("sentence_id")
    query.sink_parquet(out / "corpus.parquet", compression="zstd", engine="streaming")
    yield pl.Series(dtype=pl.UInt64)
    yield from _parquet_ids([out / "corpus.parquet"])


def datasets_map(source: Path, out: Path) -> Iterator[pl.Series]:
    """Run the usual script with datasets: map row by row, drop duplicates, write Parquet."""
    import datasets
    import xxhash

    datasets.disable_progress_bars()
    controls, spaces = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufeff]"), re.compile(r"\s+")

    def clean(row: dict[str, str]) -> dict[str, str]:
        return {
            name: unicodedata.normalize("NFC", spaces.sub(" ", controls.sub("", row[name])).strip())
            for name in ("sentence1", "sentence2")
        }

    yield pl.Series(dtype=pl.UInt64)
    rows = datasets.load_dataset("json", data_files=str(source), split="train", cache_dir=str(out / "cache"))
    rows = rows.map(clean)
    seen: dict[int, str] = {}
    for batch in rows.iter(batch_size=10_000):
        for name in ("sentence1", "sentence2"):
            for text in batch[name]:
                seen.setdefault(xxhash.xxh64_intdigest(text.encode()), text)
    # datasets cannot build a column of unsigned 64-bit integers above 2^63, so Polars writes the table.
    frame = pl.DataFrame(
        {"sentence_id": list(seen), "text": list(seen.values())}, schema_overrides={"sentence_id": pl.UInt64}
    )
    named = frame.with_columns(source=pl.lit("nli"), lang=pl.lit("en")).sort("sentence_id")
    named.write_parquet(out / "corpus.parquet", compression="zstd")
    yield pl.Series(dtype=pl.UInt64)
    yield from _parquet_ids([out / "corpus.parquet"])


def _parquet_ids(parts: list[Path]) -> Iterator[pl.Series]:
    for part in parts:
        yield pl.read_parquet(part, columns=["sentence_id"])["sentence_id"]


VARIANTS: dict[str, Callable[[Path, Path], Iterator[pl.Series]]] = {
    "ours": ours,
    "polars": bare_polars,
    "datasets.map": datasets_map,
}


class Result(TypedDict):
    """Cost of a variant's process, and the number and digest of the ids it published."""

    seconds: float
    mib: float
    unique: int
    ids: str


def child(name: str, source: Path) -> None:
    """Run one variant, and print its seconds, its peak memory and a digest of the published ids."""
    with tempfile.TemporaryDirectory(dir=source.parent) as folder:
        steps = VARIANTS[name](source, Path(folder))
        next(steps)  # imports
        started = time.perf_counter()
        next(steps)  # the work
        seconds = time.perf_counter() - started
        peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
        digest, unique = hashlib.sha256(), 0
        for ids in steps:
            digest.update(ids.to_numpy().tobytes())
            unique += len(ids)
    result = Result(seconds=seconds, mib=int(peak.split()[1]) / 1024, unique=unique, ids=digest.hexdigest())
    print(json.dumps(result))


def run(name: str, source: Path) -> Result:
    command = [sys.executable, "-m", "benchmarks.speed.bench_ingest", "--child", name, "--source", str(source)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    result: Result = json.loads(done.stdout.splitlines()[-1])
    print(f"  {name:13} {result['seconds']:8.2f} s {result['mib']:7.0f} MiB  {result['unique']:,} unique", flush=True)
    return result


def compare(source: Path, rows: int, rounds: int) -> bool:
    """Time all variants and print their ratios; return whether the goals are met."""
    order = [name for _ in range(rounds) for name in ("ours", "polars")]
    order.insert(len(order) // 2, "datasets.map")  # takes a minute: once, between the others
    results: dict[str, list[Result]] = {name: [] for name in VARIANTS}
    for name in order:
        results[name].append(run(name, source))
    if len({result["ids"] for runs in results.values() for result in runs}) != 1:
        print("the variants do not agree on the ids; their times mean nothing")
        return False
    median = {name: statistics.median(result["seconds"] for result in runs) for name, runs in results.items()}
    print("\n| variant | s (min, median, max) | peak MiB | x datasets.map | x polars |\n|---|---|--:|--:|--:|")
    for name, runs in results.items():
        seconds = sorted(result["seconds"] for result in runs)
        spread = f"{seconds[0]:.2f}, {median[name]:.2f}, {seconds[-1]:.2f}"
        peak = max(result["mib"] for result in runs)
        ratios = f"{median['datasets.map'] / median[name]:.1f} | {median['polars'] / median[name]:.2f}"
        print(f"| {name} | {spread} | {peak:.0f} | {ratios} |")
    began = time.perf_counter()
    size = len(source.read_bytes())
    alone = time.perf_counter() - began
    print(f"\nreading the {size / 2**20:,.0f} MiB alone, kept in memory by the system: {alone:.2f} s, "
          f"{alone / median['ours']:.0%} of ours")  # fmt: skip
    over_datasets, over_polars = median["datasets.map"] / median["ours"], median["polars"] / median["ours"]
    print(f"\ngoals over {rows:,} rows: >= {GOAL_DATASETS:g}x datasets.map: {over_datasets:.1f}", end="; ")
    print(f">= {GOAL_POLARS:g}x polars: {over_polars:.2f}")
    return over_datasets >= GOAL_DATASETS and over_polars >= GOAL_POLARS


def from_hub(folder: Path, rows: int) -> float:
    """Return our peak memory on a stand-in Hub's sentences in Parquet shards, the usual form of large sets."""
    from tests.hub.cluster import of_the_hub
    from tests.hub.server import StandInHub

    random = np.random.default_rng(7)
    words = pl.Series(
        ["".join(random.choice(list("etaoinshrdlucmfwypvbgk"), size)) for size in random.integers(2, 9, 20_000)]
    )
    files, shards = {}, -(-rows // (2 * CHUNK))
    for shard in range(shards):
        count = min(2 * CHUNK, rows - shard * 2 * CHUNK)
        buffer = io.BytesIO()
        pl.DataFrame({"text": _sentences(random, words, count, 14, 6)}).write_parquet(buffer)
        files[f"data/train-{shard:05d}-of-{shards:05d}.parquet"] = buffer.getvalue()
    hub = StandInHub()
    hub.add("datasets", HUB_SET, files)
    print(f"{rows:,} rows in {shards} Parquet files, {sum(map(len, files.values())) / 2**20:,.0f} MiB", flush=True)
    os.environ |= of_the_hub(hub, folder / "home")
    return run("ours", folder / "on-the-hub")["mib"]


def main() -> int:
    """Return exit status 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--hub", action="store_true")
    parser.add_argument("--child", choices=list(VARIANTS), help=argparse.SUPPRESS)
    parser.add_argument("--source", type=Path, help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.child:
        child(wanted.child, wanted.source)
        return 0
    rows = wanted.rows or (10_000_000 if wanted.memory else 5_000_000 if wanted.hub else 1_000_000)
    with tempfile.TemporaryDirectory() as folder:
        if wanted.hub:
            peak = from_hub(Path(folder), rows)
            print(f"goal: peak below {GOAL_HUB_MIB:.0f} MiB: {peak:.0f}")
            return 0 if peak < GOAL_HUB_MIB else 1
        source = Path(folder) / "nli.jsonl"
        write_rows(source, rows)
        print(f"{rows:,} rows, {source.stat().st_size / 2**20:,.0f} MiB of JSON lines", flush=True)
        if not wanted.memory:
            return 0 if compare(source, rows, wanted.rounds) else 1
        peak = run("ours", source)["mib"]
        print(f"goal: peak below {GOAL_MIB:.0f} MiB: {peak:.0f}")
        return 0 if peak < GOAL_MIB else 1


if __name__ == "__main__":
    sys.exit(main())
