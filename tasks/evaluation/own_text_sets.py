"""Somebody's text for a field of methods: what all of them are asked, what labels teach."""

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
    """The sentences that no method sees."""
    rows = work.store.scan(passages).filter(pl.col("part") != TRAIN).collect()
    unique = rows.unique("sentence_id", keep="first").sort("sentence_id")
    work.draft.write(unique.select("sentence_id", "text", "source", "lang"))
    work.draft.note({"sentences": unique.height})


@stage(ref=PairsRef, version=6)
def pair_own_labels(work: StageContext, passages: PassagesRef, labels: LabelSource, use: Use, seed: int) -> None:
    """What labels teach as scored pairs: those given, or texts beside others of their class and of other classes.

    Args:
        work: the draft.
        passages: the text, with its held-out parts.
        labels: the labels.
        use: what they are for.
        seed: decides which of them judge.

    Raises:
        TrainingError: they tell nothing apart.
        EvaluationError: they are too few to prove anything.
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
    """`labelled_rows` of labels that teach, and what they say: `class` (a number) or `score`.

    Raises:
        EvaluationError: too few rows are left to judge anything.
    """
    said = pl.col("label").rank("dense").cast(pl.Int64) - 1 if labels.kind == "classes" else pl.col("label").cast(float)
    rows = labelled_rows(store, passages, labels, use=use, seed=seed)
    return rows.with_columns(said.alias("class" if labels.kind == "classes" else "score"))
