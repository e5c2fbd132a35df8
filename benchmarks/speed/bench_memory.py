"""Peak memory at scale: every stage before training, and the report's examples, on 1, 5 and 20 million sentences.

    python -m benchmarks.speed.bench_memory                                  1 M, 5 M and 20 M sentences; 18 GB of disk
    python -m benchmarks.speed.bench_memory --sentences 50000 200000         other sizes
    python -m benchmarks.speed.bench_memory --folder /large/disk             folder of the temporary store

Each step runs in its own process, so that its peak memory (VmHWM) is its own; imports are not timed, cost is CPU time.
Sentences are pseudo-words with Zipf frequencies, as in real text. Their translations are written to the four memories
of two round trips, in shards of a GPU's size and in source order; nothing is translated. Views are filtered as in the
recipes of published rows; language identification, which is optional, would cost 0.2 ms per text.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from bsl.storage.artifacts.refs import CorpusRef, ViewsRef
    from bsl.tasks.stage.run_context import RunContext
    from bsl.tasks.translation.translator import ResolvedTranslator

GOAL_GIB, GOAL_GROWTH = 4.0, 1.3
SIZES = (1_000_000, 5_000_000, 20_000_000)
LANGS = ("de", "fr")
WORD_LOST = {"de": r"^\S+ ", "fr": r" \S+$"}
LOT = 262_144  # sentences generated at once


def write_sentences(folder: Path, count: int) -> None:
    """Write files of sentences in random order, 72 characters on average."""
    import numpy as np

    random = np.random.default_rng(3)
    letters = np.array(list("etaoinshrdlucmfwypvbgk"))
    words = pl.Series(["".join(random.choice(letters, size)) for size in random.integers(2, 9, 100_000)]).unique()
    for start in range(0, count, LOT):
        rows = min(LOT, count - start)
        lengths = random.poisson(8, rows) + 2
        picks = np.minimum(random.zipf(1.3, int(lengths.sum())), len(words)) - 1
        rare = random.integers(0, len(words), rows)  # else short sentences would repeat
        text = pl.DataFrame({"row": np.repeat(np.arange(rows), lengths), "word": words.gather(picks)})
        joined = text.group_by("row", maintain_order=True).agg(pl.col("word").str.join(" "))
        texts = words.gather(rare) + " " + joined["word"] + "."
        texts.alias("text").to_frame().write_parquet(folder / f"{start:012}.parquet")


def publish_translations(folder: Path, _count: int) -> None:
    """Fill the memories of four translators: forward as "de …", back without the first or the last word."""
    from bsl.models.corpus.normalize import sentence_ids
    from bsl.storage.artifacts.manifest import Provenance
    from bsl.storage.artifacts.refs import ArtifactRef
    from bsl.tasks.translation.translate import GPU_SHARD_ROWS

    store = site(folder).open_store()
    texts = pl.scan_parquet(folder / "source").select("text").collect_batches(chunk_size=GPU_SHARD_ROWS)
    for number, lot in enumerate(texts):
        english = lot["text"].unique(maintain_order=True)
        for lang in LANGS:
            foreign = f"{lang} " + english
            back = english.str.replace(WORD_LOST[lang], "")
            for hop, source, target in ((f"en-{lang}", english, foreign), (f"{lang}-en", foreign, back)):
                fingerprint = hop_of(hop).fingerprint
                part = pl.DataFrame({"source": source, "text": target}).select(
                    sentence_ids(pl.col("source")).alias("sentence_id"), "text", lang=pl.lit(hop[3:]),
                    translator=pl.lit(fingerprint), n_tokens=pl.lit(12, pl.UInt32), score=pl.lit(-0.5, pl.Float32),
                )  # fmt: skip
                ref = ArtifactRef(kind=f"translations/{fingerprint}", key=f"{number * 2**200:064x}")
                with store.draft(ref, Provenance(stage_version=1, config={})) as draft:
                    draft.write(part, "translations")


def ingest(folder: Path, _count: int, source: str = "source") -> str:
    """Make the corpus: normalised, unique, sorted by id."""
    from bsl.storage.sources.sources import SourceSpec
    from bsl.tasks.corpus.config import IngestConfig
    from bsl.tasks.corpus.ingest import ingest as stage
    from bsl.tasks.corpus.ingest import locate_sources

    config = IngestConfig(sources=(SourceSpec(path=str(folder / source)),))
    return stage(site(folder), locate_sources(site(folder), config), config).key


def ingest_few(folder: Path, _count: int) -> str:
    """Make a small corpus in addition to the large one."""
    (folder / "few").mkdir()
    pl.scan_parquet(folder / "source").head(1000).sink_parquet(folder / "few" / "0.parquet")
    return ingest(folder, 1000, "few")


def plan(folder: Path, count: int) -> None:
    """Plan the shards for an empty memory: sort all sentences by length, cut them into shards, and write these."""
    from bsl.models.runtime.partitions import bits_for, in_range
    from bsl.tasks.stage.shards import plan_shards
    from bsl.tasks.translation.translate import CPU_SHARD_ROWS

    store, ref = site(folder).open_store(), corpus_of(folder)
    table, bits = store.scan(ref), bits_for(store.manifest(ref).rows)
    lots = (in_range(table, number, bits).collect() for number in range(1 << bits))
    with store.workspace() as scratch:
        shards = plan_shards(lots, CPU_SHARD_ROWS, scratch)
    if sum(shard.rows for shard in shards) != store.manifest(ref).rows:
        raise SystemExit(f"the plan has not all of {count} sentences")


def augment(folder: Path, _count: int) -> str:
    """Make views of two round trips from the memories: join, filter and sort them, with the originals."""
    from bsl.tasks.translation.route import Route
    from bsl.tasks.views.augment import make_views

    routes = tuple(Route(method=f"bt-{lang}", hops=(hop_of(f"en-{lang}"), hop_of(f"{lang}-en"))) for lang in LANGS)
    corpus = corpus_of(folder)
    return make_views(site(folder), corpus, routes, (), (), original=True).key


def pair(folder: Path, _count: int) -> str:
    """Pair the two round trips of each sentence, shuffled."""
    from bsl.models.views.pairs import PairConfig
    from bsl.tasks.views.pairs import pair as stage

    return stage(site(folder), views_of(folder), PairConfig()).key


def pair_thinned(folder: Path, _count: int) -> str:
    """Pair as `pair` does, with frequent words subsampled."""
    from bsl.models.views.pairs import PairConfig
    from bsl.tasks.views.pairs import pair as stage

    config = PairConfig(subsample_words=1e-3)
    return stage(site(folder), views_of(folder), config).key


def tfidf(folder: Path, _count: int) -> str:
    """Fit TF-IDF on the corpus, and embed a small corpus."""
    from bsl.tasks.embedding.embed import embed_tfidf

    return embed_tfidf(site(folder), corpus_of(folder), corpus_of(folder, "small corpus")).key


def report(folder: Path, _count: int) -> None:
    """Make the examples of views in a report."""
    from bsl.tasks.reporting.run.page import _examples

    if len(_examples(site(folder).open_store(), views_of(folder))) != 5:
        raise SystemExit("the views have no five examples")


Step = Callable[[Path, int], str | None]
BEFORE: dict[str, Step] = {
    "sentences": lambda folder, count: write_sentences(folder / "source", count),
    "small corpus": ingest_few,
    "translations": publish_translations,
}
STEPS: dict[str, Step] = {
    "ingest": ingest,
    "plan": plan,
    "augment": augment,
    "pair": pair,
    "TF-IDF": tfidf,
    "report": report,
    "pair, thinned": pair_thinned,
}
MADE = {"ingest": "corpus", "augment": "views", "small corpus": "small corpus"}


def site(folder: Path) -> RunContext:
    """Return a run context whose store is in the folder."""
    from bsl.tasks.stage.run_context import RunContext

    return RunContext(store=str(folder / "store"), cache=str(folder / "cache"), device="cpu", threads=1)


def hop_of(name: str) -> ResolvedTranslator:
    """Return a translator that is never loaded."""
    from bsl.models.translation.config import TranslatorConfig
    from bsl.storage.sources.model_sources import ResolvedModel
    from bsl.tasks.translation.translator import ResolvedTranslator

    source, target = name.split("-")
    config = TranslatorConfig(model=name, source_lang=source, target_lang=target)
    return ResolvedTranslator(
        identity={"model": name}, config=config, model=ResolvedModel(identity=name, location=Path(name))
    )


def corpus_of(folder: Path, name: str = "corpus") -> CorpusRef:
    """Return the corpus of a step."""
    from bsl.storage.artifacts.refs import CorpusRef

    return CorpusRef(key=(folder / name).read_text())


def views_of(folder: Path) -> ViewsRef:
    """Return the views of `augment`."""
    from bsl.storage.artifacts.refs import ViewsRef

    return ViewsRef(key=(folder / "views").read_text())


def run_step(name: str, folder: Path, count: int) -> None:
    """Run a step in the child process and print its cost; imports are not timed."""

    started = time.process_time()
    key = (BEFORE | STEPS)[name](folder, count)
    seconds = time.process_time() - started
    if name in MADE:
        (folder / MADE[name]).write_text(str(key))
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    print(json.dumps({"cpu": seconds, "gib": int(peak.split()[1]) / 2**20}))


def measure(count: int, folder: Path) -> dict[str, dict[str, float]]:
    """Return CPU seconds and peak GiB of each step for a number of sentences."""
    (folder / "source").mkdir()
    figures = {}
    for name in BEFORE | STEPS:
        command = [sys.executable, "-m", "benchmarks.speed.bench_memory", "--step", name, str(folder), str(count)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        figures[name] = json.loads(done.stdout.splitlines()[-1])
        disk = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 2**30
        cost = figures[name]["cpu"] / count * 1e6
        told = f"{figures[name]['gib']:.2f} GiB, {cost:.1f} µs of CPU a sentence, store {disk:.2f} GiB"
        print(f"{count:,}, {name}: {told}", flush=True)
    return {name: figures[name] for name in STEPS}


def table(figures: dict[int, dict[str, dict[str, float]]]) -> str:
    """Return a table of peak memory and cost by step and size, with peaks extrapolated linearly to 100 million."""
    sizes = sorted(figures)
    head = " | ".join(f"{size:,}" for size in sizes)
    lines = [f"| step | peak GiB: {head} | 100 M, computed | µs of CPU a sentence: {head} |"]
    lines.append("|---|" + "--:|" * (2 * len(sizes) + 1))
    for name in STEPS:
        peaks = [figures[size][name]["gib"] for size in sizes]
        costs = [figures[size][name]["cpu"] / size * 1e6 for size in sizes]
        last = (peaks[-1] - peaks[-2]) / (sizes[-1] - sizes[-2]) if len(sizes) > 1 else 0.0
        far = peaks[-1] + max(0.0, last) * (100_000_000 - sizes[-1])
        cells = [f"{peak:.2f}" for peak in peaks] + [f"{far:.2f}"] + [f"{cost:.1f}" for cost in costs]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    """Measure every size; return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--step", nargs=3, help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.step:
        run_step(wanted.step[0], Path(wanted.step[1]), int(wanted.step[2]))
        return 0
    figures = {}
    for count in sorted(wanted.sentences):
        with tempfile.TemporaryDirectory(dir=wanted.folder) as folder:
            figures[count] = measure(count, Path(folder))
    print("\n" + table(figures))
    least, most = min(figures), max(figures)
    peak = max(step["gib"] for size in figures.values() for step in size.values())
    cost = {size: sum(step["cpu"] for step in steps.values()) / size for size, steps in figures.items()}
    growth = cost[most] / cost[least]
    met = peak <= GOAL_GIB and growth <= GOAL_GROWTH
    print(
        f"\npeak {peak:.2f} GiB (goal {GOAL_GIB:g}); cost a sentence x {growth:.2f} from {least:,} to {most:,} ", end=""
    )
    print(f"(goal {GOAL_GROWTH:g}): {'met' if met else 'MISSED'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
