"""Compare training with and without dropout in the target, on `bert-mini`.

    bsl run tiny --set ingest.corpus.limit=null                         makes the pairs
    python -m benchmarks.quality.bench_target_dropout PAIRS.parquet            200 steps, seeds 0 and 1

The released code uses this dropout; the paper does not mention it. Pairs are a sentence's round trips through German
and French, as in the paper, from a run's pairs. The preset is the paper's, with a standardised target, because
`bert-mini` collapses otherwise (bench_collapse.py). STS-B dev, evaluated every fifty steps, selects the encoder that is
scored on test.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import polars as pl

from bsl.flows.recipes.paper import PAPER_TRAINING
from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.evaluation.correlation import cosine_scores, spearman
from bsl.models.runtime.precision import computed
from bsl.models.training.config import TrainingConfig
from bsl.models.training.loop import train
from bsl.storage.assets.embedded import embedded_path

MODEL = EncoderConfig(model="embedded:bert-mini", dropout=0.1)
PRECISION = computed("auto", "cpu")


def scored(split: str) -> pl.DataFrame:
    return pl.read_parquet(embedded_path("stsb") / f"{split}.parquet")


def setting(seed: int, steps: int, *, dropout: bool) -> TrainingConfig:
    base = PAPER_TRAINING
    objective = base.objective.model_copy(update={"target_norm": "standardize", "target_dropout": dropout})
    changes = {"objective": objective, "max_steps": steps, "eval_every": 50, "precision": PRECISION, "collapse": None}
    return base.model_copy(update={**changes, "seed": seed})


def score(encoder: SentenceEncoder, pairs: pl.DataFrame) -> float:
    first, second = (encoder.encode(pairs[side].to_list()) for side in ("sentence1", "sentence2"))
    return 100 * spearman(cosine_scores(first, second), pairs["score"])


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("pairs", type=Path, nargs="?")
    arguments.add_argument("--steps", type=int, default=200)
    given = arguments.parse_args()
    if given.pairs is None:
        print("bench_target_dropout: needs the pairs of a run; nothing measured")
        return
    pairs = pl.read_parquet(given.pairs).filter(pl.col("source") == "bt-de|bt-fr")
    dev, test = scored("dev"), scored("test")
    print(f"{len(pairs):,} pairs, {PRECISION}\n\n| target dropout | seed | dev | test |\n|---|--:|--:|--:|", flush=True)
    for seed in (0, 1):
        for dropout in (False, True):
            start = SentenceEncoder.load(embedded_path("bert-mini"), MODEL)
            done = train(pairs, start, setting(seed, given.steps, dropout=dropout), dev=dev)
            assert done.best_dev is not None  # there is a dev set
            reached = 100 * done.best_dev, score(start.with_network(done.encoder), test)
            print(f"| {'on' if dropout else 'off'} | {seed} | {reached[0]:.2f} | {reached[1]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
