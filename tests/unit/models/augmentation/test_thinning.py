"""Thinning frequent words: the published probability, the same draw for the same id, never an empty view."""

import math

import polars as pl

from models.augmentation import thinning
from models.augmentation.thinning import thinned


def frame(texts: list[str]) -> pl.DataFrame:
    return pl.DataFrame({"id": range(len(texts)), "text": texts}, schema_overrides={"id": pl.UInt64})


def test_words_are_kept_with_the_published_probability():
    texts = frame([f"the the the the the the the rare{n} x{n} y{n}" for n in range(2000)])
    kept = sum(text.split().count("the") for text in thinned(texts, 0.01, seed=1))
    expected = math.sqrt(0.01 / 0.7)  # "the" is 7 of 10 words
    assert abs(kept / 14000 - expected) < 0.01
    assert all(f"rare{n}" in text for n, text in enumerate(thinned(texts, 0.01, seed=1)))


def test_the_draw_hangs_on_the_id_and_the_seed_alone():
    texts = frame([f"a man {n} is walking a dog in the park" for n in range(50)])
    once = thinned(texts, 0.01, seed=3)
    assert thinned(texts.reverse(), 0.01, seed=3).reverse().to_list() == once.to_list()
    assert thinned(texts, 0.01, seed=4).to_list() != once.to_list()


def test_a_view_never_becomes_empty():
    texts = frame(["the the", "the", "", "the cat"])
    assert all(
        len(after) > 0 or before == ""
        for before, after in zip(texts["text"], thinned(texts, 1e-9, seed=0), strict=True)
    )


def test_how_many_texts_are_held_at_a_time_does_not_show(monkeypatch):
    """Words are counted over all of them, and drawn by id."""
    texts = frame([f"A man {n} walks the dog, and the man's dog walks {'him ' * (n % 4)}" for n in range(100)])
    at_once = thinned(texts, 0.01, seed=3)
    monkeypatch.setattr(thinning, "_ROWS", 7)
    assert thinned(texts, 0.01, seed=3).to_list() == at_once.to_list()
    assert thinned(texts.clear(), 0.01, seed=3).to_list() == []
