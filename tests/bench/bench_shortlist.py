"""A shorter output vocabulary (`augment.shortlist`): how much faster, and how many translations change.

    python tests/bench/bench_shortlist.py            opus-mt shapes, then embedded models on held-out text, greedy
    python tests/bench/bench_shortlist.py --beam 4   the embedded models as `bsl field` searches with them (`tiny`: 2)
    python tests/bench/bench_shortlist.py --quick    few sentences, one round

The opus-mt model has the real shapes and random weights, as in bench_translation.py: it tells seconds alone. Ratios are
of CPU seconds of one thread, variants in turn. Held out are the last sentences in the order of their ids; the sample is
all before them, at most the 30,000 of the default. SNLI and Tatoeba are read where BSL_DATA_MIRROR has them; Tatoeba's
held-out pairs have references.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import polars as pl

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tests.bench.bench_translation import MINI, TOKEN, sentences  # noqa: E402

SAMPLE, HELD_OUT = 30_000, 2000
COUNTS = (2000, 8000, 16_000)
SPEED_GOAL, CHANGED_GOAL = 1.5, 0.01


def speed(count: int, rounds: int) -> bool:
    """CPU seconds of one thread on opus-mt's shapes, whole and with the first pieces of the vocabulary."""
    from models.bench.fixtures import opus_shapes
    from models.translation.config import TranslatorConfig
    from models.translation.loading import load_translator
    from models.translation.vocabulary import Vocabulary
    from storage.embedded import embedded_path

    forced = {"new_tokens_ratio": 1.0, "new_tokens_constant": 1}
    met, texts = True, sentences(count)
    with tempfile.TemporaryDirectory() as scratch:
        folder = opus_shapes(embedded_path(MINI), Path(scratch) / "opus")
        every = Vocabulary(folder, TOKEN, 256)
        kept = {n: None if n is None else every.names(range(2, n)) for n in (None, *COUNTS)}
        for beam in (1, 4):
            config = TranslatorConfig.model_validate(
                {"model": MINI, "source_lang": "en", "target_lang": "de", "target_token": TOKEN, "beam": beam} | forced
            )
            made = {
                n: load_translator(folder, config, "cpu", Path(scratch) / f"{n}", 1, pieces=pieces)
                for n, pieces in kept.items()
            }
            seconds: dict[int | None, list[float]] = {n: [] for n in made}
            for _ in range(rounds + 1):  # the first call of an engine is slower than all others
                for n, translator in made.items():
                    seconds[n].append(_cpu_seconds(lambda each=translator: each.translate(texts)))
            whole = min(seconds[None][1:])
            for n in COUNTS:
                print(f"opus-mt shapes, beam {beam}, {n:,} of 58,101 pieces: {whole / min(seconds[n][1:]):.2f} x")
            met &= whole / min(seconds[8000][1:]) >= SPEED_GOAL
    return met


def texts_to_translate(*, quick: bool) -> Iterator[tuple[str, str, list[str], list[str] | None]]:
    """What is translated, the held-out part last, with references of that part where there are any."""
    from storage.embedded import embedded_path

    def read(name: str, file: str) -> pl.DataFrame | None:
        path = Path(os.environ.get("BSL_DATA_MIRROR", ".")) / name / file
        return pl.read_parquet(path) if path.exists() else None

    nli = pl.read_parquet(embedded_path("nli-sample") / "train.parquet")
    yield "embedded NLI sample", "en-de", _in_random_order([nli["premise"], nli["hypothesis"]]), None
    if quick:
        return
    if (snli := read("snli_train_part", "triplets.parquet")) is not None:
        yield "SNLI", "en-de", _in_random_order([snli[name] for name in snli.columns])[: SAMPLE + HELD_OUT], None
    for name, other in (("en-de", "de"), ("de-en", "de")):
        source, target = name.split("-")
        if (pairs := read(f"tatoeba_en_{other}", "all.parquet")) is not None:
            held = pl.read_parquet(embedded_path("held-out") / f"tatoeba-{other}.parquet").head(HELD_OUT)
            others = _in_random_order([pairs.filter(~pl.col(source).is_in(held[source].implode()))[source]])
            yield "Tatoeba", name, [*others[:SAMPLE], *held[source]], held[target].to_list()


def _in_random_order(columns: Sequence[pl.Series]) -> list[str]:
    """Each text once, as ids are ordered: by a hash."""
    from models.text.normalize import sentence_ids

    texts = pl.concat([column.alias("text") for column in columns]).drop_nulls().unique().to_frame()
    return texts.sort(sentence_ids(pl.col("text")))["text"].to_list()


def change(text: str, name: str, beam: int, sources: list[str], references: list[str] | None) -> float:
    """Print what changes in the held-out part; its share."""
    from models.pretraining.quality import translation_quality
    from models.translation.catalog import MINI as DIRECTIONS
    from models.translation.loading import load_translator
    from models.translation.shortlist import most_frequent
    from storage.embedded import embedded_path

    config = DIRECTIONS[name].model_copy(update={"beam": beam})
    folder = embedded_path(config.model.removeprefix("embedded:"))
    sample, held = sources[:-HELD_OUT], sources[-HELD_OUT:]
    with tempfile.TemporaryDirectory() as scratch:
        whole = load_translator(folder, config, "cpu", Path(scratch) / "whole", 1)
        counted, _ = most_frequent(whole.vocabulary, [[each.text for each in whole.translate(sample)]], 8000)
        pieces = [piece for piece, _ in counted]
        short = load_translator(folder, config, "cpu", Path(scratch) / "short", 1, pieces=pieces)
        found: dict[str, list[str]] = {}
        seconds = {}
        for label, translator in (("whole", whole), ("restricted", short)):
            seconds[label] = _cpu_seconds(
                lambda label=label, each=translator: found.update({label: [row.text for row in each.translate(held)]})
            )
    changed = sum(a != b for a, b in zip(found["whole"], found["restricted"], strict=True)) / len(held)
    quality = {label: translation_quality(rows, references) if references else None for label, rows in found.items()}
    shown = ["" if each is None else f"{each['bleu']:.2f}, {each['chrf']:.2f}" for each in quality.values()]
    print(
        f"| {text} | {name} | {len(sample):,} | {len(pieces):,} | {len(held):,} | {changed:.2%} | "
        f"{seconds['whole'] / seconds['restricted']:.2f} | {' | '.join(shown)} |",
        flush=True,
    )
    return changed


def _cpu_seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def main() -> int:
    """Measure; exit code 1 if a goal is missed, that of changes where the sample is as large as the default."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few sentences, one round, no mirror")
    parser.add_argument("--beam", type=int, default=1, help="of the embedded models (1)")
    arguments = parser.parse_args()
    met = speed(32, 1) if arguments.quick else speed(64, 3)
    print("\n| text | direction | sample | pieces | held out | changed | x whole, CPU | BLEU, chrF | with pieces |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|", flush=True)
    for text, name, sources, references in texts_to_translate(quick=arguments.quick):
        changed = change(text, name, arguments.beam, sources, references)
        met &= changed <= CHANGED_GOAL or len(sources) < SAMPLE
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
