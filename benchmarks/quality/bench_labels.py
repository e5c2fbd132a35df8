"""How much labelled rows improve an encoder: accuracy of a logistic regression on test rows outside all training.

    python -m benchmarks.quality.bench_labels ENCODER --set trec/train.parquet trec/test.parquet text coarse_label
    python -m benchmarks.quality.bench_labels ENCODER --set … --setfit venv/bin/python

Compared on the same rows: the original vectors; the vectors after the label training of `bsl adapt`, unmerged and
merged with the start at the share that `bsl adapt` chooses on STS-B's dev set; and with `--setfit` those of SetFit
(Tunstall et al., 2022) with its own settings, in a Python that has it. All use the same head: scikit-learn's logistic
regression with its default regularisation, on unit vectors of the labelled rows.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import torch
from sklearn.linear_model import LogisticRegression

if TYPE_CHECKING:
    from bsl.models.encoder.sentence_encoder import SentenceEncoder

ROOT = Path(__file__).resolve().parents[2]
PEER = Path(__file__).with_name("setfit_peer.py")


def main() -> int:
    """Print a line for each set, number of rows per class, and system."""
    parser = argparse.ArgumentParser()
    parser.add_argument("encoder", help="as of `bsl export`: folder, embedded:, report/")
    parser.add_argument("--set", nargs=4, action="append", required=True, metavar=("TRAIN", "TEST", "TEXT", "LABEL"))
    parser.add_argument("--rows", type=int, nargs="+", default=[8, 16, 64], help="rows a class")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--test", type=int, help="most test rows, the first")
    parser.add_argument("--steps", type=int, help="steps of training, in the place of those of `bsl adapt`")
    parser.add_argument("--lr", type=float, help="its learning rate, alike")
    parser.add_argument("--precision", default="fp32", help="its arithmetic; SetFit's is fp32")
    parser.add_argument("--setfit", help="Python with setfit")
    parser.add_argument("--peer-only", action="store_true", help="leave out the training of `bsl adapt`")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    found: dict[tuple[str, int, str], list[tuple[float, float]]] = {}
    # Seed by seed, so that an interrupted command has results of all cells.
    for seed in range(arguments.seeds):
        for train, test, text, label in arguments.set:
            known, asked = (
                pl.read_parquet(path).select(text=text, label=pl.col(label).cast(str)) for path in (train, test)
            )
            asked = asked.head(arguments.test) if arguments.test else asked
            for rows in arguments.rows:
                for name, figure in figures(arguments, few(known, rows, seed), asked, seed).items():
                    found.setdefault((Path(train).parent.name, rows, name), []).append(figure)
                    value, seconds = figure
                    print(
                        f"{Path(train).parent.name} {rows} seed {seed} {name}: {value:.1f}, {seconds:.0f} CPU s",
                        flush=True,
                    )
    for (text, rows, name), pairs in found.items():
        values, times = zip(*pairs, strict=True)
        each = " ".join(f"{value:.1f}" for value in values)
        print(f"{text} {rows} {name}: {np.mean(values):.2f} ({each}), {np.mean(times):.0f} CPU s")
    return 0


def few(known: pl.DataFrame, rows: int, seed: int) -> pl.DataFrame:
    """Draw this number of rows from each class."""
    return pl.concat(
        own.sample(rows, seed=seed, shuffle=True)
        for _, own in known.sort("label").group_by("label", maintain_order=True)
    )


def figures(
    arguments: argparse.Namespace, known: pl.DataFrame, asked: pl.DataFrame, seed: int
) -> dict[str, tuple[float, float]]:
    """Return system → accuracy × 100 and CPU seconds of its training."""
    from bsl.flows.recipes.adaptation import AdaptConfig
    from bsl.flows.run_context import run_context_of
    from bsl.models.corpus.labels import class_pairs
    from bsl.models.encoder.config import EncoderConfig
    from bsl.models.encoder.sentence_encoder import SentenceEncoder
    from bsl.models.training.loop import train
    from bsl.models.views.annotated_pairs import own_rehearsal, scored_pairs, with_rehearsal
    from bsl.tasks.embedding.encoders import encoder_folder, find_encoder
    from bsl.tasks.stage.device import precision_of

    site = run_context_of(None)
    folder = encoder_folder(site.open_store(), find_encoder(site, arguments.encoder, None))
    start = SentenceEncoder.load(folder, EncoderConfig(model=arguments.encoder))
    texts, classes = known["text"].to_list(), known["label"].rank("dense").cast(int).to_numpy() - 1
    found = {"frozen": (accuracy_of(start, known, asked), 0.0)}
    if arguments.setfit:
        found["setfit"] = setfit(arguments.setfit, folder, known, asked, seed)
    if arguments.peer_only:
        return found
    changes = {"max_steps": arguments.steps, "lr": arguments.lr, "seed": seed}
    changes["precision"] = precision_of(site, arguments.precision)
    changes = {name: value for name, value in changes.items() if value is not None}
    config = AdaptConfig().label_training_for("classes", start.network.token_width).model_copy(update=changes)
    general = pl.read_parquet(ROOT / "storage/assets/stsb/train.parquet")
    rehearsed = {"stsb": general, "own text": own_rehearsal(pl.Series(texts), seed)}
    pairs = with_rehearsal(scored_pairs(class_pairs(texts, classes), 1.0, "labels", 0), rehearsed, seed)
    began = time.process_time()
    result = train(pairs, start, config)
    spent = time.process_time() - began
    learnt = start.with_network(result.encoder)
    share, merged = chosen(start, learnt)
    for name, encoder in (("labels", learnt), (f"labels, merged at {share}", merged)):
        found[name] = (accuracy_of(encoder, known, asked), spent)
    return found


def chosen(start: SentenceEncoder, learnt: SentenceEncoder) -> tuple[float, SentenceEncoder]:
    """Return the share of the learnt weights that `bsl adapt` chooses, and the merged encoder."""
    from bsl.flows.recipes.adaptation import AdaptConfig
    from bsl.models.evaluation.correlation import cosine_scores, spearman
    from bsl.models.evaluation.significance.paired import forgets

    dev = pl.read_parquet(ROOT / "storage/assets/stsb/dev.parquet")

    def score(encoder: SentenceEncoder) -> float:
        sides = [encoder.encode(dev[side].to_list()) for side in ("sentence1", "sentence2")]
        return spearman(cosine_scores(*sides), dev["score"].to_numpy())

    config, before = AdaptConfig().proof, score(start)
    for share in sorted(config.shares, reverse=True):
        merged = start.merged(learnt, share)
        if not forgets(score(merged) - before, config.max_forgetting / 100 / 2):
            break
    return share, merged


def accuracy_of(encoder: SentenceEncoder, known: pl.DataFrame, asked: pl.DataFrame) -> float:
    """Return `accuracy` of an encoder's vectors."""
    return accuracy(encoder.encode(known["text"].to_list()), encoder.encode(asked["text"].to_list()), known, asked)


def accuracy(known_ND: np.ndarray, asked_MD: np.ndarray, known: pl.DataFrame, asked: pl.DataFrame) -> float:
    """Return accuracy × 100 of a logistic regression on unit vectors."""
    unit = [vectors / np.linalg.norm(vectors, axis=1, keepdims=True) for vectors in (known_ND, asked_MD)]
    head = LogisticRegression(max_iter=2000).fit(unit[0], known["label"].to_list())
    return 100 * float(head.score(unit[1], asked["label"].to_list()))


def setfit(python: str, folder: Path, known: pl.DataFrame, asked: pl.DataFrame, seed: int) -> tuple[float, float]:
    """Return SetFit's accuracy × 100 and CPU seconds; its body is trained in another Python."""
    with tempfile.TemporaryDirectory() as scratch:
        job = Path(scratch) / "job.json"
        texts = {"known": known["text"].to_list(), "asked": asked["text"].to_list()}
        job.write_text(json.dumps({"folder": str(folder), "seed": seed, "labels": known["label"].to_list()} | texts))
        subprocess.run([python, str(PEER), str(job)], check=True)
        made = np.load(Path(scratch) / "vectors.npz")
        return accuracy(made["known"], made["asked"], known, asked), float(made["seconds"])


if __name__ == "__main__":
    sys.exit(main())
