"""Stages for the user's text: held-out sentences of `bsl field`, training pairs of labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from models.corpus.labels import TEACH, Use, class_pairs, shares
from models.views.annotated_pairs import scored_pairs
from storage.artifacts.refs import CorpusRef, PairsRef, PassagesRef
from storage.sources.labels import LabelSource
from tasks.corpus.labels import TRAIN, labelled_rows
from tasks.stage.cached import StageContext, stage
from tasks.stage.ui import show_table

if TYPE_CHECKING:
    from storage.artifacts.store import Store


@stage(ref=CorpusRef, version=1)
def field_held(work: StageContext, passages: PassagesRef) -> None:
    """Publish the unique held-out sentences, which no method trains on."""
    rows = work.store.scan(passages).filter(pl.col("part") != TRAIN).collect()
    unique = rows.unique("sentence_id", keep="first").sort("sentence_id")
    work.draft.write(unique.select("sentence_id", "text", "source", "lang"))
    work.draft.note({"sentences": unique.height})


@stage(ref=PairsRef, version=6)
def pair_own_labels(work: StageContext, passages: PassagesRef, labels: LabelSource, use: Use, seed: int) -> None:
    """Make scored training pairs of labels: the given pairs, or texts paired within and across classes.

    Args:
        work: the stage's context.
        passages: the text, with its held-out parts.
        labels: the labels.
        use: use of the labels.
        seed: decides which labels are for evaluation.

    Raises:
        TrainingError: too few classes, or no different scores, to train on.
        EvaluationError: too few labels for an evaluation.
    """
    rows = known_labels(work.store, passages, labels, use=use, seed=seed).filter(part=TEACH)
    if labels.kind == "classes":
        pairs = class_pairs(rows["text_1"].to_list(), rows["class"].to_numpy())
    else:
        pairs = rows.select(sentence1="text_1", sentence2="text_2", score=shares(rows["score"]))
    made = scored_pairs(pairs, 1.0, "labels", 0)
    work.draft.write(made)
    work.draft.note({"labels": rows.height, "pairs": made.height})
    show_table("label-pairs", made.head(20).select("text_1", "text_2", "score").to_dicts(), "What the labels teach")


def known_labels(
    store: Store, passages: PassagesRef, labels: LabelSource, *, use: Use = "field", seed: int = 0
) -> pl.DataFrame:
    """Return `labelled_rows` with their label as `class` (a number from 0) or `score`.

    Raises:
        EvaluationError: too few rows are left for an evaluation.
    """
    values = (
        pl.col("label").rank("dense").cast(pl.Int64) - 1 if labels.kind == "classes" else pl.col("label").cast(float)
    )
    rows = labelled_rows(store, passages, labels, use=use, seed=seed)
    return rows.with_columns(values.alias("class" if labels.kind == "classes" else "score"))
