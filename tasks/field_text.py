"""Somebody's text for a field of methods: what all of them learn from, what all are asked, what labels teach."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from models.annotated import scored_pairs
from models.errors import EvaluationError
from models.evaluation.own_text import ENOUGH, TOO_FEW, probes
from models.own_labels import PROVING, class_pairs, provable, proves, sentences_of, shares
from models.text.normalize import sentence_ids
from storage.labels import LabelSource, read_labels
from storage.refs import CorpusRef, PairsRef, PassagesRef, ViewsRef
from tasks.labels import TRAIN, sides_of
from tasks.stage.cached import Work, stage
from tasks.stage.show import show_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    from models.evaluation.retrieval import Retrieval
    from storage.store import Store


@stage(ref=CorpusRef, version=3)
def field_corpus(work: Work, passages: PassagesRef, labels: LabelSource | None) -> None:
    """The sentences that every method may learn from: none that is held out, or that a proving label speaks of.

    Raises:
        EvaluationError: the labels are too few to prove anything, which is said before any method is trained.
    """
    rows = work.store.scan(passages).collect()
    own = rows.filter(part=TRAIN).unique("sentence_id", keep="first", maintain_order=True)
    rare: dict[str, JsonValue] = {}
    between = 0
    if labels is not None:
        labelled = labelled_rows(work.store, passages, labels)
        given = read_labels(labels)
        if labels.kind == "classes":
            left_out = given.filter(~pl.col("label").is_in(labelled["label"].unique().implode()))
            rare = dict(left_out["label"].value_counts().sort("label").iter_rows())
        else:
            between = given.height - labelled.height
        proving = labelled.filter("proves")
        spoken = pl.concat([sentences_of(proving[side]) for side in sides_of(labels)])
        own = own.filter(~pl.col("sentence_id").is_in(spoken.implode()))
    work.draft.write(own.select("sentence_id", "text", "source", "lang").sort("sentence_id"))
    held_out = rows.filter(pl.col("part") != TRAIN).height
    work.draft.note({"sentences": own.height, "held_out": held_out, "rare_classes": rare, "between": between})


@stage(ref=CorpusRef, version=1)
def field_held(work: Work, passages: PassagesRef) -> None:
    """The sentences that no method sees."""
    rows = work.store.scan(passages).filter(pl.col("part") != TRAIN).collect()
    unique = rows.unique("sentence_id", keep="first").sort("sentence_id")
    work.draft.write(unique.select("sentence_id", "text", "source", "lang"))
    work.draft.note({"sentences": unique.height})


@stage(ref=CorpusRef, version=3)
def field_asked(
    work: Work, passages: PassagesRef, trips: ViewsRef | None, labels: LabelSource | None, questions: int
) -> None:
    """Every text that the proofs ask about, as it is asked: questions, what is searched, labelled texts.

    Raises:
        EvaluationError: nothing can be asked.
    """
    found = own_probes(work.store, passages, trips, questions)
    texts = [pl.Series(text, dtype=pl.String) for probe in found.values() for text in (probe.queries, probe.targets)]
    if labels is not None:
        rows = read_labels(labels)
        texts += [rows[side] for side in sides_of(labels)]
    if not texts:
        raise EvaluationError(f"{TOO_FEW}; give more text ({ENOUGH}), or labels")
    unique = pl.concat([part.alias("text") for part in texts]).unique().to_frame()
    table = unique.with_columns(sentence_id=sentence_ids(pl.col("text")), source=pl.lit("asked"), lang=pl.lit("en"))
    work.draft.write(table.select("sentence_id", "text", "source", "lang").sort("sentence_id"))
    work.draft.note({"texts": unique.height, "questions": {name: len(probe) for name, probe in found.items()}})


@stage(ref=PairsRef, version=3)
def pair_own_labels(work: Work, passages: PassagesRef, labels: LabelSource) -> None:
    """What labels teach as scored pairs: those given, or texts beside others of their class and of other classes.

    Raises:
        TrainingError: they tell nothing apart.
        EvaluationError: they are too few to prove anything.
    """
    rows = labelled_rows(work.store, passages, labels).filter(~pl.col("proves"))
    if labels.kind == "classes":
        pairs = class_pairs(rows["text_1"].to_list(), rows["class"].to_numpy())
    else:
        pairs = rows.select(sentence1="text_1", sentence2="text_2", score=shares(rows["score"]))
    made = scored_pairs(pairs, 1.0, "labels", 0)
    work.draft.write(made)
    work.draft.note({"labels": rows.height, "pairs": made.height})
    show_table("label-pairs", made.head(20).select("text_1", "text_2", "score").to_dicts(), "What the labels teach")


def question_counts(store: Store, texts: CorpusRef) -> dict[str, int]:
    """Probe → how many questions it asks."""
    counts = store.manifest(texts).figures["questions"]
    assert isinstance(counts, dict)
    return {name: number for name, number in counts.items() if isinstance(number, int)}


def labelled_rows(store: Store, passages: PassagesRef, labels: LabelSource) -> pl.DataFrame:
    """`text_1`, `text_2` of pairs, `label`, `class` (a number) or `score`, and `proves`: whether a row is held out.

    Rows of classes that too few rows teach are left out, and pairs that neither prove nor teach.

    Raises:
        EvaluationError: too few rows are left to prove anything.
    """
    parts = store.scan(passages).select("sentence_id", "part").collect()
    known = [parts.filter((pl.col("part") == TRAIN) == is_learnt)["sentence_id"] for is_learnt in (False, True)]
    rows = read_labels(labels)
    divided = rows.with_columns(proves(rows, sides_of(labels), *known, share=PROVING).alias("proves"))
    said = pl.col("label").rank("dense").cast(pl.Int64) - 1 if labels.kind == "classes" else pl.col("label").cast(float)
    return provable(divided, labels.kind).with_columns(said.alias("class" if labels.kind == "classes" else "score"))


def own_probes(store: Store, passages: PassagesRef, trips: ViewsRef | None, questions: int) -> Mapping[str, Retrieval]:
    """What is asked of the held-out text."""
    sentences = store.scan(passages).filter(pl.col("part") != TRAIN).collect()
    both = sentences.with_columns(unit=pl.struct("part", "unit").rank("dense") - 1)  # each part counts from 0
    made = None if trips is None else store.scan(trips).filter(pl.col("method").str.starts_with("bt-")).collect()
    return probes(both, made, questions=questions)
