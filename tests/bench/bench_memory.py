"""Translation memory at scale: publish five million translations, then find what a corpus grown by 1 % lacks.

    python tests/bench/bench_memory.py            5 M sentences
    python tests/bench/bench_memory.py --quick    200,000 sentences

Each step runs in a process of its own, so that its peak memory (VmHWM) is its own; imports are not timed. Parts have
the size of a GPU's shard. The second step ends where translating would begin: with the missing sentences sorted, cut
into shards and written.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
GOAL_SECONDS, GOAL_GIB = 60.0, 4.0
WORDS = 9  # of mostly two to six letters: NLI's mean of 50 characters a sentence


def write_sentences(path: Path, count: int) -> None:
    """Distinct sentences of pseudo-words with their ids."""
    import numpy as np

    from models.text.normalize import sentence_ids

    random = np.random.default_rng(3)
    letters = np.array(list("etaoinshrdlucmfwypvbgk"))
    words = pl.Series(["".join(random.choice(letters, size)) for size in random.integers(2, 9, 50_000)])
    frame = pl.DataFrame({str(n): words.gather(random.integers(0, len(words), count)) for n in range(WORDS)})
    number = pl.int_range(count).cast(pl.String)
    texts = frame.select(pl.concat_str(*(str(n) for n in range(WORDS)), number, separator=" ").alias("text"))
    texts.select(sentence_ids(pl.col("text")).alias("sentence_id"), "text").write_parquet(path)


def publish(corpus: Path, store: str, count: int) -> None:
    """All but the last hundredth of the sentences become parts of a memory."""
    from storage.manifest import Provenance
    from storage.refs import ArtifactRef
    from storage.store import Store
    from tasks.translate import GPU_SHARD_ROWS

    place = Store(store)
    for start in range(0, count, GPU_SHARD_ROWS):
        rows = min(GPU_SHARD_ROWS, count - start)
        ref = ArtifactRef(kind="translations/0123456789abcdef", key=f"{start:064x}")
        shard = pl.scan_parquet(corpus).slice(start, rows).collect()
        part = shard.with_columns(
            lang=pl.lit("de"), translator=pl.lit("0123456789abcdef"),
            n_tokens=pl.lit(12, dtype=pl.UInt32), score=pl.lit(-0.5, dtype=pl.Float32),
        )  # fmt: skip
        with place.draft(ref, Provenance(stage_version=1, config={})) as draft:
            draft.write(part, "translations")


def find_missing(corpus: Path, store: str, count: int) -> None:
    """Anti-join of the whole corpus with the memory, then the plan of its shards."""
    from storage.memory import TranslationMemory
    from storage.store import Store
    from tasks.translate import GPU_SHARD_ROWS, plan_shards

    memory = TranslationMemory(Store(store), "0123456789abcdef")
    with tempfile.TemporaryDirectory() as folder:
        shards = plan_shards(memory.missing(pl.scan_parquet(corpus)), GPU_SHARD_ROWS, Path(folder) / "plan.parquet")
    found = sum(shard.rows for shard in shards)
    if found != count // 100:
        raise SystemExit(f"{found} sentences are missing, expected {count // 100}")


STEPS = {"publish": publish, "anti-join and plan": find_missing}


def step(name: str, corpus: Path, store: str, count: int) -> tuple[float, float]:
    """Seconds and peak GiB of one step in its own process."""
    told = subprocess.run(
        [sys.executable, __file__, "--step", name, str(corpus), store, str(count)],
        check=True, capture_output=True, text=True,
    ).stdout.split()  # fmt: skip
    return float(told[0]), float(told[1])


def run_step(name: str, corpus: str, store: str, count: str) -> None:
    """The child's part: imports first, then the clock."""
    import tasks.translate  # noqa: F401 - brings the others

    known = int(count) - int(count) // 100
    started = time.perf_counter()
    STEPS[name](Path(corpus), store, known if name == "publish" else int(count))
    seconds = time.perf_counter() - started
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    print(seconds, int(peak.split()[1]) / 2**20)


def main() -> int:
    """Time both steps; exit code 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="200,000 sentences")
    parser.add_argument("--step", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step:
        run_step(*arguments.step)
        return 0
    count = 200_000 if arguments.quick else 5_000_000
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "corpus.parquet"
        write_sentences(corpus, count)
        found = {name: step(name, corpus, f"{folder}/store", count) for name in STEPS}
    print(f"| step, {count:,} sentences | seconds | peak GiB |\n|---|--:|--:|")
    for name, (seconds, peak) in found.items():
        print(f"| {name} | {seconds:.1f} | {peak:.2f} |")
    seconds, peak = sum(each[0] for each in found.values()), max(each[1] for each in found.values())
    met = seconds <= GOAL_SECONDS and peak <= GOAL_GIB
    told = f"together {seconds:.1f} s (goal {GOAL_SECONDS:g}), {peak:.2f} GiB (goal {GOAL_GIB:g})"
    print(f"{told}: {'met' if met else 'MISSED'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
