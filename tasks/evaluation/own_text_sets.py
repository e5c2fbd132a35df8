"""Somebody's text for a field of methods: what all of them are asked, what labels teach."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from models.corpus.labels import TEACH, class_pairs, shares
from models.corpus.normalize import sentence_ids
from models.errors import EvaluationError
from models.evaluation.own_text import ENOUGH, TOO_FEW, probes
from models.views.annotated_pairs import scored_pairs
from storage.artifacts.refs import CorpusRef, PairsRef, PassagesRef, ViewsRef
from storage.sources.labels import LabelSource, read_labels
from tasks.corpus.labels import TRAIN, labelled_rows, sides_of
from tasks.stage.cached import Work, stage
from tasks.stage.ui import show_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from models.evaluation.retrieval import Retrieval
    from storage.artifacts.store import Store


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


@stage(ref=PairsRef, version=5)
def pair_own_labels(work: Work, passages: PassagesRef, labels: LabelSource) -> None:
    """What labels teach as scored pairs: those given, or texts beside others of their class and of other classes.

    Raises:
        TrainingError: they tell nothing apart.
        EvaluationError: they are too few to prove anything.
    """
    rows = known_labels(work.store, passages, labels).filter(part=TEACH)
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


def known_labels(store: Store, passages: PassagesRef, labels: LabelSource) -> pl.DataFrame:
    """`labelled_rows` of labels that teach, and what they say: `class` (a number) or `score`.

    Raises:
        EvaluationError: too few rows are left to judge anything.
    """
    said = pl.col("label").rank("dense").cast(pl.Int64) - 1 if labels.kind == "classes" else pl.col("label").cast(float)
    rows = labelled_rows(store, passages, labels, teach=True)
    return rows.with_columns(said.alias("class" if labels.kind == "classes" else "score"))


def own_probes(store: Store, passages: PassagesRef, trips: ViewsRef | None, questions: int) -> Mapping[str, Retrieval]:
    """What is asked of the held-out text."""
    sentences = store.scan(passages).filter(pl.col("part") != TRAIN).collect()
    both = sentences.with_columns(unit=pl.struct("part", "unit").rank("dense") - 1)  # each part counts from 0
    made = None if trips is None else store.scan(trips).filter(pl.col("method").str.starts_with("bt-")).collect()
    return probes(both, made, questions=questions)
