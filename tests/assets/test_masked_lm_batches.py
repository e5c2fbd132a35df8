"""Batches of pre-training, and the selection of training text."""

import numpy as np
import polars as pl

from assets.training.corpora import (
    prose_sentences,
    sentences_of,
    split_pairs,
    training_sentences,
    wiki_sentences,
)
from assets.training.masked_lm import length_batches


def test_batches_contain_each_example_once_within_token_limit():
    lengths = np.random.default_rng(0).integers(1, 40, 500)
    batches = length_batches(lengths, 120, np.random.default_rng(1), window=200)
    assert sorted(np.concatenate(batches).tolist()) == list(range(500))
    assert all(len(batch) * lengths[batch].max() <= 120 for batch in batches)


def test_example_above_the_token_limit_gets_its_own_batch():
    batches = length_batches(np.array([3, 500, 3]), 100, np.random.default_rng(0))
    assert sorted(len(batch) for batch in batches) == [1, 2]


def test_passages_become_sentences_without_field_names():
    text = "Fact: The sun is a star. It is very hot in the middle.\nTopic: sun."
    assert sentences_of(text) == ["The sun is a star.", "It is very hot in the middle."]


def test_book_lines_are_joined_and_headings_removed():
    text = "CHAPTER ONE OF THE BOOK\n\nShe walked to the\nold mill. It was closed that day."
    assert prose_sentences(text) == ["She walked to the old mill.", "It was closed that day."]


def test_wikitext_markup_is_undone_and_unk_sentences_dropped():
    lines = [" = Title of the page = ", " A well @-@ known city of 3 @,@ 000 . The <unk> river is long and wide . "]
    assert wiki_sentences(lines) == ["A well-known city of 3,000 ."]


def test_evaluation_sentences_are_excluded_from_training():
    groups = [["A man plays a guitar.", "A dog runs."], ["a dog runs", "The sky is blue."]]
    chosen = training_sentences(groups, [10, 10], forbidden=["a man plays  a guitar"], seed=0)
    assert sorted(chosen) == ["A dog runs.", "The sky is blue."]


def test_held_out_pairs_share_no_side_with_training_in_any_language():
    english = [f"Sentence number {i}." for i in range(120)]
    pairs = {
        "de": pl.DataFrame({"en": english, "other": [f"Satz {i % 60}." for i in range(120)]}),
        "fr": pl.DataFrame({"en": [e.upper() for e in english], "other": [f"Phrase {i}." for i in range(120)]}),
    }
    train, apart = split_pairs(pairs, held_out=5, seed=3)
    held = {e.lower() for frame in apart.values() for e in frame["en"]}
    assert [len(frame) for frame in apart.values()] == [5, 5]
    for language, frame in train.items():
        assert len(frame) > 50
        assert not held & {e.lower() for e in frame["en"]}
        assert not set(frame["other"]) & set(apart[language]["other"])
