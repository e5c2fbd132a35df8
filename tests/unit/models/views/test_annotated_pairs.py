"""Annotated sentences as training pairs: classes or scores, groups, order."""

from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest

from bsl.models.corpus.normalize import sentence_ids
from bsl.models.views.annotated_pairs import labelled_pairs, own_rehearsal, scored_pairs, with_rehearsal
from bsl.storage.artifacts.schemas import PAIRS

CORPUS = pl.LazyFrame(
    {
        "sentence_id": pl.Series([1, 2, 3, 4], dtype=pl.UInt64),
        "text": ["Two dogs run.", "Animals move.", "Cats sleep.", "A man sings."],
        "source": "t",
        "lang": "en",
    }
)
NLI_SCHEMA = {"premise_id": pl.UInt64, "hypothesis_id": pl.UInt64, "label": pl.Int8}
NLI = pl.LazyFrame([(1, 2, 0), (1, 3, 2), (4, 2, 1), (4, 2, 2), (9, 1, 0)], schema=NLI_SCHEMA, orient="row")
SCORED = pl.DataFrame(
    {
        "sentence1": ["Two dogs  run.", "A man sings.", "Two dogs run."],
        "sentence2": ["Animals move.", "Cats sleep.", "Animals move."],
        "score": [4.0, 0.5, 3.5],
    }
)


def labelled(corpus, nli, seed, bits=0):
    with TemporaryDirectory() as scratch:
        return pl.concat(labelled_pairs(corpus, nli, seed, bits, Path(scratch)))


@pytest.mark.parametrize("seed", [None, 3])
def test_number_of_ranges_does_not_change_labelled_pairs(seed):
    texts = pl.LazyFrame({"text": [f"Sentence {n}." for n in range(90)], "lang": "en"})
    corpus = texts.select(sentence_ids(pl.col("text")).alias("sentence_id"), "text", "lang").sort("sentence_id")
    ids = corpus.collect()["sentence_id"]
    rows = [(ids[n // 3 % 90], ids[(7 * n + 1) % 90], n % 3) for n in range(200)]
    nli = pl.LazyFrame(rows, schema=NLI_SCHEMA, orient="row")
    assert labelled(corpus, nli, seed, bits=3).equals(labelled(corpus, nli, seed))
    assert labelled(corpus, nli, seed).height == 200


def test_labelled_pairs_join_premise_hypothesis_and_label():
    pairs = labelled(CORPUS, NLI, None)
    assert pairs.schema == PAIRS
    assert pairs.select("group", "text_1", "text_2", "label").sort("group", "label").rows() == [
        (1, "Two dogs run.", "Animals move.", 0),
        (1, "Two dogs run.", "Cats sleep.", 2),
        (4, "A man sings.", "Animals move.", 1),
        (4, "A man sings.", "Animals move.", 2),
    ]
    assert pairs["group"].is_sorted()  # the pairs of a premise are consecutive
    assert pairs["pair_id"].n_unique() == pairs["score"].null_count() == 4


def test_scores_are_divided_by_maximum_and_texts_are_unchanged():
    pairs = scored_pairs(SCORED, 5.0, "stsb train", None)
    assert pairs.schema == PAIRS
    assert pairs.select("text_1", "text_2").rows() == SCORED.select("sentence1", "sentence2").rows()
    assert pairs["score"].to_list() == pytest.approx([0.8, 0.1, 0.7])
    assert pairs["sentence_id"][0] == pairs["sentence_id"][2]  # the same sentence except for spaces
    assert pairs["pair_id"].n_unique() == 3  # the same pair scored twice is two pairs
    assert pairs.select("label", "group").null_count().row(0) == (3, 3)


@pytest.mark.parametrize(
    "made", [lambda seed: labelled(CORPUS, NLI, seed), lambda seed: scored_pairs(SCORED, 5.0, "s", seed)]
)
def test_seed_changes_only_the_order_of_pairs(made):
    orders = [made(seed) for seed in (1, 1, 2, 3, 4)]
    assert orders[0].equals(orders[1])
    assert len({tuple(order["pair_id"]) for order in orders}) > 1
    assert all(order.sort("pair_id").equals(orders[0].sort("pair_id")) for order in orders)


@pytest.mark.parametrize("labels", [3, 17])  # half as many general pairs: fewer than there are, and more
def test_rehearsed_pairs_have_no_score_and_repeat_if_there_are_too_few(labels):
    own = pl.DataFrame([(f"a {row}", f"b {row}", 1.0) for row in range(labels)], SCORED.schema, orient="row")
    training = scored_pairs(own, 1.0, "labels", 0)
    together = with_rehearsal(training, {"stsb train": SCORED}, 0)
    assert together.schema == PAIRS
    assert together.head(labels).equals(training)
    general = together.slice(labels)
    assert general.height == general["score"].null_count() == general["pair_id"].n_unique() == (labels + 1) // 2
    assert {*general.select("text_1", "text_2").iter_rows()} <= {*SCORED.select("sentence1", "sentence2").iter_rows()}
    assert together.equals(with_rehearsal(training, {"stsb train": SCORED}, 0))


def test_rehearsed_sets_share_the_added_pairs():
    training = scored_pairs(SCORED.sample(40, with_replacement=True, seed=0), 5.0, "labels", 0)
    own = own_rehearsal(pl.Series([f"text {row}" for row in range(30)]), 0)
    together = with_rehearsal(training, {"stsb train": SCORED, "own text": own}, 0)
    assert dict(together.slice(40)["source"].value_counts().iter_rows()) == {"stsb train": 10, "own text": 10}
    assert with_rehearsal(training, {}, 0).equals(training)


@pytest.mark.parametrize("extra", [[], ["an odd number of texts"]])
def test_own_rehearsal_has_each_sentence_and_the_halves_of_long_ones(extra):
    sentences = pl.Series(["too short for halves", "one two three four five six seven eight nine", *extra])
    pairs = own_rehearsal(sentences, 0)
    texts = [*pairs["sentence1"], *pairs["sentence2"]]
    assert {*texts} == {*sentences, "one two three four", "five six seven eight nine"}
    assert len(texts) == len({*texts}) + len({*texts}) % 2
    assert pairs.equals(own_rehearsal(sentences, 0))
