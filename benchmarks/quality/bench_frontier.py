"""What training on labels gains on the labels, and what it loses elsewhere: the frontier of `bsl adapt`'s settings.

    python -m benchmarks.quality.bench_frontier FOLDER [--texts …] [--start ENCODER] [--seeds 2] [--settings …]

FOLDER is that of verdict_texts.py. Of each text, 600 rows give their labels and the other rows are scored, × 100:

- labels: accuracy of a logistic regression on the vectors of the 600 rows; mean accuracy of the nearest neighbour and
  of centroids of five examples. Of pairs: Spearman of the cosine.
- own text: MRR of a text's second half among all second halves, asked by the first (of texts of eight words or more).
- general: Spearman on STS-B's dev set, by which `bsl adapt` chooses the share of the trained weights.

The first line of a text is the original encoder: no change, and a classifier on frozen vectors. Intervals use 1,000
draws of rows, against this line. Each line is printed as soon as it is known.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from unittest.mock import patch

import numpy as np
import polars as pl
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

from benchmarks.quality.bench_labels import ROOT
from bsl.flows.recipes.adaptation import AdaptConfig
from bsl.flows.run_context import run_context_of
from bsl.models.corpus.labels import class_pairs, shares
from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.evaluation.correlation import cosine_scores, spearman
from bsl.models.evaluation.grouping import centroid_accuracy, neighbour_accuracy
from bsl.models.evaluation.retrieval import Retrieval, reciprocal_ranks
from bsl.models.evaluation.significance.hierarchical import difference_of, draws_of
from bsl.models.evaluation.sweep import outcome_draws
from bsl.models.objectives import supervised
from bsl.models.training.loop import train
from bsl.models.views.annotated_pairs import own_rehearsal, scored_pairs, with_rehearsal
from bsl.models.views.cropping import halves
from bsl.tasks.embedding.encoders import encoder_folder, find_encoder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsl.models.encoder.network import Encoder

GIVEN: Final = 600
WORDS: Final = 8
DEV: Final = pl.read_parquet(ROOT / "storage/assets/stsb/dev.parquet")
GENERAL: Final = pl.read_parquet(ROOT / "storage/assets/stsb/train.parquet")


@dataclass(frozen=True)
class Setting:
    """Anchor weight, whether own text is rehearsed, and whether similarities are anchored instead of vectors."""

    anchor: float | None = None
    own: bool = True
    relational: bool = False


SETTINGS: Final = {
    "default": Setting(),
    "own=false": Setting(own=False),
    "anchor=0.2": Setting(0.2),
    "anchor=1": Setting(1.0),
    "relational": Setting(relational=True),
    "relational=1": Setting(1.0, relational=True),
}


@dataclass(frozen=True)
class Measured:
    """Scores of an encoder: per label row (or the cosines of pairs), per question, and on the dev set."""

    labels: dict[str, NDArray[np.float64]]
    ranks: NDArray[np.float64]
    general: float


def main() -> int:
    """Print a line for each text, seed, setting and share."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--texts", nargs="+", required=True)
    parser.add_argument("--start", default="embedded:mini-sentence")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--shares", nargs="+", type=float, default=[0.5, 1.0])
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    site = run_context_of(None)
    folder = encoder_folder(site.open_store(), find_encoder(site, arguments.start, None))
    start = SentenceEncoder.load(folder, EncoderConfig(model=arguments.start))
    print(f"| text | seed | setting | share | labels | MRR | STS-B |\n|{'---|' * 7}", flush=True)
    for seed in arguments.seeds:
        for name in arguments.texts:
            table = pl.read_parquet(arguments.folder / f"{name}.parquet").sample(fraction=1, shuffle=True, seed=seed)
            given, other = table[:GIVEN], table[GIVEN:]
            if "label" in table.columns:  # a class needs two given rows, for the folds of the classifier
                known = given.filter(pl.len().over("label") >= 2)
                given, other = known, other.filter(pl.col("label").is_in(known["label"].unique().implode()))
            before = measured(start, given, other)
            print(line([name, seed, "original", 0], before, before, other), flush=True)
            for setting in arguments.settings:
                learnt = start.with_network(trained(start, given, SETTINGS[setting], seed))
                for share in arguments.shares:
                    after = measured(start.merged(learnt, share), given, other)
                    print(line([name, seed, setting, share], before, after, other), flush=True)
    return 0


def trained(start: SentenceEncoder, given: pl.DataFrame, setting: Setting, seed: int) -> Encoder:
    """Return the network after the label training of `bsl adapt` with a setting."""
    has_classes = "label" in given.columns
    texts = given["text"].to_list()
    if has_classes:
        pairs = class_pairs(texts, given["label"].rank("dense").cast(int).to_numpy() - 1)
    else:
        pairs = given.select(sentence1="text", sentence2="text_2", score=shares(given["score"]))
    changes = {} if setting.anchor is None else {"class_anchor": setting.anchor}
    config = AdaptConfig(**changes).label_training_for("classes" if has_classes else "pairs", start.network.token_width)
    if setting.anchor is not None:
        config = config.model_copy(update={"objective": config.objective.with_anchor(setting.anchor)})
    config = config.model_copy(update={"seed": seed, "precision": "fp32"})
    own = pl.concat([given[side] for side in ("text", "text_2") if side in given.columns])
    rehearsed = {"stsb": GENERAL, **({"own text": own_rehearsal(own, seed)} if setting.own else {})}
    training = with_rehearsal(scored_pairs(pairs, 1.0, "labels", 0), rehearsed, seed)
    error = relational_error if setting.relational else supervised.anchored_error
    with patch.object(supervised, "anchored_error", error):
        return train(training, start, config).encoder


def relational_error(
    h_2BD: torch.Tensor, t_2BD: torch.Tensor, scores_B: torch.Tensor, anchor_weight: float
) -> torch.Tensor:
    """Return the loss of `anchored_error` with changes of similarities within a batch in the place of vectors'."""
    unit = [torch.nn.functional.normalize(one, dim=-1) for one in (h_2BD, t_2BD)]
    changes = (unit[0] @ unit[0].T - unit[1] @ unit[1].T) ** 2
    change_B = changes.mean(dim=1).view(2, -1).mean(dim=0)
    h1_BD, h2_BD = h_2BD.chunk(2)
    error_B = torch.nn.functional.cosine_similarity(h1_BD, h2_BD) - scores_B.nan_to_num()
    return torch.where(scores_B.isnan(), change_B, error_B**2 + anchor_weight * change_B).mean()


def measured(encoder: SentenceEncoder, given: pl.DataFrame, other: pl.DataFrame) -> Measured:
    """Score an encoder on labels, own text and the dev set."""
    if "label" in other.columns:
        asked_MD, known_ND = (normalize(encoder.encode(rows["text"].to_list())) for rows in (other, given))
        head = LogisticRegression(max_iter=2000).fit(known_ND, given["label"].to_list())
        right_M = head.predict(asked_MD) == other["label"].to_numpy()
        classes_M = other["label"].rank("dense").cast(int).to_numpy() - 1
        rows_M = np.arange(len(classes_M))
        both = [of(asked_MD, classes_M, rows_M) for of in (neighbour_accuracy, centroid_accuracy)]
        grouping = np.nanmean(both, axis=0)
        labels = {"classify": right_M.astype(np.float64), "group": grouping}
    else:
        labels = {"similarity": cosine_scores(*(encoder.encode(other[side].to_list()) for side in ("text", "text_2")))}
    asked = [text for text in other["text"].unique(maintain_order=True) if len(text.split()) >= WORDS]
    cut = [halves(text) for text in asked]
    rows, parts = np.arange(len(cut)), [tuple(pair[side] for pair in cut) for side in (0, 1)]
    questions = Retrieval("crop", parts[0], parts[1], rows, rows, np.full(len(cut), -1))
    sides = [encoder.encode(DEV[side].to_list()) for side in ("sentence1", "sentence2")]
    ranks = reciprocal_ranks(lambda texts: encoder.encode(list(texts)), questions)
    return Measured(labels, ranks, spearman(cosine_scores(*sides), DEV["score"].to_numpy()))


def line(cells: list[object], before: Measured, after: Measured, other: pl.DataFrame) -> str:
    """Return a row of the table."""
    scores = other["score"].to_numpy() if "score" in other.columns else None
    labels = [f"{use} {figure(before.labels[use], after.labels[use], scores)}" for use in before.labels]
    general = f"{100 * after.general:.2f} ({100 * (after.general - before.general):+.2f})"
    return f"| {' | '.join([*map(str, cells), '; '.join(labels), figure(before.ranks, after.ranks), general])} |"


def figure(before: NDArray[np.float64], after: NDArray[np.float64], scores: NDArray[np.float64] | None = None) -> str:
    """Return the score after, and its difference with interval."""
    if scores is None:
        drawn = list(outcome_draws([before[None], after[None]], np.arange(len(before))))
        value = float(after.mean())
    else:
        drawn = [draws_of(scores, cosines[None]) for cosines in (before, after)]
        value = spearman(after, scores)
    found = difference_of(*drawn)
    return f"{100 * value:.1f} ({100 * found.value:+.1f} [{100 * found.ci_low:+.1f}, {100 * found.ci_high:+.1f}])"


if __name__ == "__main__":
    sys.exit(main())
