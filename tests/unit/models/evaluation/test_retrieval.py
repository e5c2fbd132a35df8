"""Retrieval probes on unlabelled text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

from bsl.models.corpus.passages import HoldOutConfig, documents, hold_out, passages
from bsl.models.errors import EvaluationError
from bsl.models.evaluation.own_text import retrieval_questions
from bsl.models.evaluation.retrieval import Retrieval, reciprocal_ranks
from bsl.models.evaluation.significance.bootstrap import unit_means
from bsl.models.evaluation.significance.hierarchical import difference_of
from bsl.models.evaluation.sweep import SetDraws, mean_of, outcome_draws

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from bsl.models.evaluation.significance.paired import Difference


def _probe(queries: Sequence[str], targets: Sequence[str], gold: list[int], own: list[int] | None = None) -> Retrieval:
    numbers = np.arange(len(queries))
    mine = np.array(own) if own else np.full(len(queries), -1)
    return Retrieval("neighbour", tuple(queries), tuple(targets), np.array(gold), numbers, mine)


VECTORS = {"a": [1.0, 0.0], "b": [2.0, 0.1], "c": [0.0, 3.0], "d": [0.1, 1.0]}


def _encode(texts: Sequence[str]) -> NDArray[np.float32]:
    return np.array([VECTORS[text] for text in texts], dtype=np.float32)


def test_ranks_are_by_cosine_and_exclude_the_query() -> None:
    probe = _probe(["a", "c"], ["a", "b", "c", "d"], [1, 1], own=[0, 2])
    # From a: b is nearest. From c: d, then b, then a (c itself is no answer).
    assert reciprocal_ranks(_encode, probe) == pytest.approx([1, 1 / 2])
    assert reciprocal_ranks(_encode, _probe(["a"], ["a", "b"], [1])) == pytest.approx([1 / 2])


def test_tied_targets_share_their_mean_rank() -> None:
    def flat(texts: Sequence[str]) -> NDArray[np.float32]:
        return np.ones((len(texts), 2), dtype=np.float32)

    # Three equal targets share ranks 1 to 3, with mean 2: a collapsed encoder finds nothing first.
    assert reciprocal_ranks(flat, _probe(["a"], ["b", "c", "d"], [0])) == pytest.approx([1 / 2])


def test_reciprocal_ranks_equal_a_float64_sort() -> None:
    generator = np.random.default_rng(3)
    texts = [str(number) for number in range(600)]
    table = dict(zip(texts, generator.normal(size=(600, 8)), strict=True))
    gold = generator.integers(0, 600, 600)
    ranks = reciprocal_ranks(
        lambda some: np.array([table[text] for text in some], dtype=np.float32), _probe(texts, texts, list(gold))
    )
    unit = np.array([table[text] / np.linalg.norm(table[text]) for text in texts])
    near = unit @ unit.T
    expected = [1 / (1 + (row > row[right]).sum()) for row, right in zip(near, gold, strict=True)]
    assert ranks == pytest.approx(expected, abs=1e-5)  # the tolerance allows for near-ties within rounding


@pytest.mark.parametrize("left_out", [0, 99])
def test_draws_stay_aligned_if_a_probe_lacks_a_document(left_out: int) -> None:
    gain, unit = np.random.default_rng(3).normal(0, 0.2, 100), np.arange(100)
    kept = unit != left_out
    whole = unit_means(gain[None], unit, resamples=500, seed=7)[:, 0]
    part = unit_means(gain[None, kept], unit[kept], resamples=500, seed=7)[:, 0]
    assert np.corrcoef(whole, part)[0, 1] > 0.97
    assert whole.std() == pytest.approx(gain.std() / 10, rel=0.1)


def _held(documents: int = 40, each: int = 5) -> pl.DataFrame:
    rows = [
        (d, n, 1000 * d + n, f"Word {n} of many words in number {d} here.", f"Title {d}")
        for d in range(documents)
        for n in range(each)
    ]
    frame = pl.DataFrame(rows, schema=["document", "position", "sentence_id", "text", "title"], orient="row")
    return frame.cast({"document": pl.UInt32, "position": pl.UInt32, "sentence_id": pl.UInt64}).with_columns(
        unit="document"
    )


def test_probes_pair_neighbours_titles_and_crops() -> None:
    held = _held()
    found = retrieval_questions(held, questions=50)
    assert {*found} == {"neighbour", "title", "crop"}
    neighbour, title, crop = (found[name] for name in ("neighbour", "title", "crop"))
    for query, gold, own in zip(neighbour.queries, neighbour.gold, neighbour.own, strict=True):
        number = int(query.split()[1])
        assert neighbour.targets[gold] == query.replace(f"Word {number} ", f"Word {number + 1} ")
        assert neighbour.targets[own] == query
    assert all(title.targets[g] == f"Title {q.split()[-2]}" for q, g in zip(title.queries, title.gold, strict=True))
    assert (crop.own == -1).all()
    asked = {f"{q} {crop.targets[g]}" for q, g in zip(crop.queries, crop.gold, strict=True)}
    assert asked <= {*held["text"]}
    assert len(crop) == 50


def test_probes_exclude_queries_that_are_their_own_answer() -> None:
    """Half of the documents have their title as first sentence; one sentence of each document has equal halves."""
    held = _held(each=3).with_columns(
        pl.when((pl.col("position") == 0) & (pl.col("document") < 20))
        .then("title")
        .when(pl.col("position") == 2)
        .then(pl.format("word{} word{}", "document", "document"))
        .otherwise("text")
        .alias("text")
    )
    found = retrieval_questions(held)
    assert {name: len(probe) for name, probe in found.items()} == {"neighbour": 80, "title": 100, "crop": 80}

    def scattered(texts: Sequence[str]) -> NDArray[np.float32]:
        draws = [np.random.default_rng(list(text.encode())).normal(size=16) for text in texts]
        return np.stack(draws).astype(np.float32)

    for probe in found.values():
        assert (probe.own != probe.gold).all()
        ranks = reciprocal_ranks(scattered, probe)
        assert 0 < ranks.min() <= ranks.max() <= 1
    repeated = _held(each=1).with_columns(text=pl.col("title"))
    assert "title" not in retrieval_questions(repeated)
    with pytest.raises(EvaluationError, match=r"1 of 2 queries are their own answers \(first: 'c'\)"):
        reciprocal_ranks(_encode, _probe(["a", "c"], ["a", "b", "c"], [1, 2], own=[0, 2]))


def test_probes_without_enough_data_are_omitted() -> None:
    lone = _held(documents=100, each=1).with_columns(title=pl.lit(None, pl.String))
    assert {*retrieval_questions(lone)} == {"crop"}
    assert retrieval_questions(lone.head(10)) == {}
    assert retrieval_questions(_held(documents=9, each=20)) == {}


def test_noise_on_one_document_is_rarely_significant() -> None:
    """Regression: draws of a single document, a file of sentences, had no width, so all noise was a difference."""
    text = "".join(f"Word {n} stands beside the word {n * n} in a line of its own.\n" for n in range(3000))
    lines = pl.DataFrame({"text": text.splitlines()}).with_columns(
        title=pl.lit(None, pl.String), document=pl.lit(None, pl.String), record=pl.int_range(pl.len(), dtype=pl.UInt32)
    )
    read = documents(lines, lines=True, first=0).with_columns(source=pl.lit("file"), lang=pl.lit("en"))
    held = hold_out(passages(read, HoldOutConfig()), HoldOutConfig()).filter(part="report")
    found = retrieval_questions(held)
    assert {*found} == {"neighbour", "crop"}
    generator = np.random.default_rng(0)

    def difference() -> Difference:
        """Return the difference of two guessing encoders on the mean of the probes."""
        sets = []
        for name, probe in found.items():
            guesses = [1 / generator.integers(1, 50, (1, len(probe))) for _ in range(2)]
            sets.append(SetDraws(name, "MRR", "text", outcome_draws(guesses, probe.unit, resamples=400)))
        return difference_of(*mean_of(sets).systems)

    differences = [difference() for _ in range(40)]
    called = sum(gain.ci_low > 0 or gain.ci_high < 0 for gain in differences)
    assert called <= 5  # 2 of 40 are expected; before the fix, all 40
