"""Runs of words as views."""

from __future__ import annotations

from models.augmentation.cropping import crop_words, halves
from models.augmentation.rewritings import CropView

WORDS = [f"w{number}" for number in range(20)]


def test_a_crop_is_a_run_of_a_share_of_the_words() -> None:
    texts = [" ".join(WORDS)] * 500
    crops = [crop.split() for crop in crop_words(texts, range(500), CropView())]
    sizes = {len(crop) for crop in crops}
    assert sizes == set(range(8, 19))
    assert all(crop == WORDS[WORDS.index(crop[0]) :][: len(crop)] for crop in crops)
    assert {crop[0] for crop in crops} >= {"w0", "w5"}
    assert any(crop[-1] == "w19" for crop in crops)


def test_a_crop_is_decided_by_its_seed_alone() -> None:
    text = " ".join(WORDS)
    assert crop_words([text, text], [7, 8], CropView())[1:] == crop_words([text], [8], CropView())


def test_texts_without_blanks_are_cut_between_characters() -> None:
    (crop,) = crop_words(["这是一个没有空格的句子"], [0], CropView())
    assert crop
    assert crop in "这是一个没有空格的句子"
    assert len(crop) < 11


def test_halves_share_no_word() -> None:
    assert halves("one two three four five") == ("one two", "three four five")
    assert halves("一二三四") == ("一二", "三四")
