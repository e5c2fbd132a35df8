"""Samples are the held-out texts that changed: their nearest text, or whether a classifier finds their class."""

import numpy as np
import polars as pl

from bsl.models.corpus.labels import JUDGE, TEACH
from bsl.models.corpus.normalize import sentence_ids
from bsl.storage.artifacts.refs import PassagesRef
from bsl.storage.artifacts.schemas import SAMPLES
from bsl.storage.sources.labels import LabelSource
from bsl.tasks.embedding.vectors import Vectors
from bsl.tasks.evaluation.own_text import HeldOutSet, questions_of
from bsl.tasks.evaluation.samples import samples_of

ROWS = 60
TEXTS = [f"The number {number} is read here {number + 500} times." for number in range(2 * ROWS)]
"""Test texts, then training texts; texts with even numbers are of class a."""
CLASSES = LabelSource(digest="d", format="csv", kind="classes", texts=("text",), label="topic", path="topics.csv")


class GivenSet(HeldOutSet):
    """Sentences of one document each, and labelled rows, in memory."""

    def read(self):
        number = pl.int_range(pl.len(), dtype=pl.UInt32)
        places = {"document": number, "unit": number, "position": pl.lit(0), "title": pl.lit(None, pl.String)}
        sentences = pl.DataFrame({"text": TEXTS[:ROWS]}).with_columns(
            sentence_id=sentence_ids(pl.col("text")), **places
        )
        labels = pl.DataFrame({"text_1": TEXTS, "label": ["a", "b"] * ROWS, "part": [JUDGE] * ROWS + [TEACH] * ROWS})
        return {"text": sentences, "labels": labels}


def _text(labels):
    return GivenSet(passages=PassagesRef(key="a" * 64), labels=labels, use="adapt", questions=1000, store="none")


def _vectors(texts, table):
    ids = pl.DataFrame({"text": texts}).select(sentence_ids(pl.col("text"))).to_series().to_list()
    return Vectors("given", dict(zip(ids, range(len(ids)), strict=True)), {}, table.astype(np.float32))


def _by_class(exchanged):
    """Return vectors that separate the classes, except that the first texts are on the other side."""
    sides = np.where(np.arange(2 * ROWS) % 2 == 0, 3.0, -3.0)
    sides[:exchanged] *= -1
    return _vectors(TEXTS, np.stack([sides, np.linspace(0, 1, 2 * ROWS)], axis=1))


def test_samples_of_classes_are_the_rows_that_changed():
    before, after = _by_class(4), _by_class(0)
    samples = samples_of(_text(CLASSES), before, after)
    assert samples.schema == SAMPLES
    classes = samples.filter(kind="class")
    assert {*classes["text"]} == {*TEXTS[:4]}
    assert (classes["label"] == classes["after"]).all()
    assert (classes["label"] != classes["before"]).all()
    near = samples.filter(kind="neighbour")
    assert near["label"].null_count() == near.height
    assert TEXTS[4] in near["text"].to_list(), "text 3 is no longer between its neighbours"
    assert {*near["text"]} <= {*TEXTS[:ROWS]}
    assert not (near["text"] == near["after"]).any()
    assert samples_of(_text(CLASSES), after, after).is_empty()


def test_samples_without_labels_are_queries_with_their_answer():
    text = _text(None)
    (question,) = questions_of(text).values()
    texts = list(dict.fromkeys([*question.queries, *question.targets]))
    generator = np.random.default_rng(0)
    tables = [generator.normal(size=(len(texts), 8)) for _ in range(2)]
    samples = samples_of(text, *(_vectors(texts, table) for table in tables))
    assert samples["kind"].unique().to_list() == ["neighbour"]
    answers = dict(zip(question.queries, (question.targets[gold] for gold in question.gold), strict=True))
    assert all(answers[row["text"]] == row["label"] for row in samples.iter_rows(named=True))
    assert {*samples["before"], *samples["after"]} <= {*question.targets}
