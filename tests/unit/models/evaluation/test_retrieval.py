"""Retrieval probes on unlabelled text."""

import numpy as np
import polars as pl
import pytest

from bsl.models.errors import EvaluationError
from bsl.models.evaluation.own_text import retrieval_questions
from bsl.models.evaluation.retrieval import Retrieval, reciprocal_ranks

VECTORS = {"a": [1.0, 0.0], "b": [2.0, 0.1], "c": [0.0, 3.0], "d": [0.1, 1.0], "e": [1.0, 0.0], "f": [1.0, 0.0]}


def _probe(queries, targets, gold, own=None):
    numbers = np.arange(len(queries))
    mine = np.array(own) if own else np.full(len(queries), -1)
    return Retrieval("neighbour", tuple(queries), tuple(targets), np.array(gold), numbers, mine)


def _encode(texts):
    return np.array([VECTORS[text] for text in texts], dtype=np.float32)


@pytest.mark.parametrize(
    ("queries", "targets", "gold", "own", "ranks"),
    [
        # From a: b is nearest. From c: d, then b, then a (c itself is no answer).
        ("ac", "abcd", [1, 1], [0, 2], [1, 2]),
        ("a", "ab", [1], None, [2]),
        # Three equal targets share ranks 1 to 3, with mean 2: a collapsed encoder finds nothing first.
        ("a", "aef", [0], None, [2]),
    ],
)
def test_ranks_are_by_cosine_exclude_the_query_and_share_the_mean_of_ties(queries, targets, gold, own, ranks):
    assert 1 / reciprocal_ranks(_encode, _probe(queries, targets, gold, own)) == pytest.approx(ranks)


def test_reciprocal_ranks_equal_a_float64_sort():
    generator = np.random.default_rng(3)
    texts = [str(number) for number in range(600)]
    table = generator.normal(size=(600, 8))
    gold = generator.integers(0, 600, 600)
    ranks = reciprocal_ranks(lambda some: table[[int(text) for text in some]], _probe(texts, texts, list(gold)))
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    expected = [1 / (1 + (row > row[right]).sum()) for row, right in zip(unit @ unit.T, gold, strict=True)]
    assert ranks == pytest.approx(expected, abs=1e-5)  # the tolerance allows for near-ties within rounding


def _held(documents=40, each=5):
    rows = [
        (d, n, 1000 * d + n, f"Word {n} of many words in number {d} here.", f"Title {d}")
        for d in range(documents)
        for n in range(each)
    ]
    frame = pl.DataFrame(rows, schema=["document", "position", "sentence_id", "text", "title"], orient="row")
    kinds = {"document": pl.UInt32, "position": pl.UInt32, "sentence_id": pl.UInt64}
    return frame.cast(kinds).with_columns(unit="document")


def test_probes_pair_neighbours_titles_and_crops():
    held = _held().with_columns(unit=pl.col("document") // 2)
    found = retrieval_questions(held, questions=50)
    neighbour, title, crop = (found[name] for name in ("neighbour", "title", "crop"))
    for query, gold, own in zip(neighbour.queries, neighbour.gold, neighbour.own, strict=True):
        number = int(query.split()[1])
        assert neighbour.targets[gold] == query.replace(f"Word {number} ", f"Word {number + 1} ")
        assert neighbour.targets[own] == query
    assert neighbour.unit.tolist() == [int(query.split()[-2]) // 2 for query in neighbour.queries]
    assert all(title.targets[g] == f"Title {q.split()[-2]}" for q, g in zip(title.queries, title.gold, strict=True))
    assert (crop.own == -1).all()
    asked = {f"{q} {crop.targets[g]}" for q, g in zip(crop.queries, crop.gold, strict=True)}
    assert asked <= {*held["text"]}
    assert len(crop) == 50


def test_probes_exclude_queries_that_are_their_own_answer():
    """Half of the documents have their title as first sentence; one sentence of each document has equal halves."""
    titled, halves = (pl.col("position") == 0) & (pl.col("document") < 20), pl.col("position") == 2
    repeated = pl.format("word{} word{}", "document", "document")
    held = _held(each=3).with_columns(text=pl.when(titled).then("title").when(halves).then(repeated).otherwise("text"))
    found = retrieval_questions(held)
    assert {name: len(probe) for name, probe in found.items()} == {"neighbour": 80, "title": 100, "crop": 80}
    assert all((probe.own != probe.gold).all() for probe in found.values())
    with pytest.raises(EvaluationError, match=r"1 of 2 queries are their own answers \(first: 'c'\)"):
        reciprocal_ranks(_encode, _probe(["a", "c"], ["a", "b", "c"], [1, 2], own=[0, 2]))


@pytest.mark.parametrize(("answer", "found"), [("Answer {}", 80), ("Kind regards", 0)])
def test_answer_to_several_questions_is_asked_for_if_one_document_has_it(answer, found):
    number = pl.col("document").cast(pl.String)
    answers = pl.concat_str(pl.lit(answer.removesuffix("{}")), number if "{}" in answer else pl.lit(""))
    text = pl.when(pl.col("position") % 2 == 1).then(answers).otherwise("text")
    held = _held(each=4).with_columns(text=text).with_columns(sentence_id=pl.col("text").hash())
    probe = retrieval_questions(held).get("neighbour")
    assert (len(probe) if probe else 0) == found
    assert probe is None or all(
        probe.targets[gold] == f"Answer {query.split()[-2]}"
        for query, gold in zip(probe.queries, probe.gold, strict=True)
    )


def test_probes_without_enough_data_are_omitted():
    lone = _held(documents=100, each=1)
    assert {*retrieval_questions(lone.with_columns(title=pl.lit(None, pl.String)))} == {"crop"}
    assert "title" not in retrieval_questions(lone.with_columns(text=pl.col("title")))
    assert retrieval_questions(lone.head(10)) == {}
    assert retrieval_questions(_held(documents=9, each=20)) == {}
