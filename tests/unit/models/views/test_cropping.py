"""Cropped and word-deletion views: the length and choice of what is left, and texts that stay whole."""

import pytest
from nltk.tokenize import NLTKWordTokenizer

from bsl.models.views.config import CropView, DeletedView
from bsl.models.views.cropping import _WORDS, crop_words, delete_words, halves
from tests.tiny_marian import SENTENCES

LONG = [f"{first} {second}" for first, second in zip(SENTENCES, SENTENCES[::-1], strict=True)]
WORDS = NLTKWordTokenizer().tokenize


def crops_of(texts, number=1, start=0, **settings):
    return crop_words(texts, range(start, start + len(texts)), CropView(**settings), number)


def deleted(texts, seeds=None, **settings):
    return delete_words(texts, seeds or range(len(texts)), DeletedView(**settings))


def test_crop_is_a_contiguous_span_within_the_share_limits():
    shares, crops = [], crops_of(LONG)
    for text, crop in zip(LONG, crops, strict=True):
        assert crop in text
        words, kept = text.split(), crop.split()
        assert any(words[start : start + len(kept)] == kept for start in range(len(words)))
        shares.append(len(kept) / len(words))
    assert min(shares) == pytest.approx(0.4, abs=0.06)
    assert max(shares) == pytest.approx(0.9, abs=0.06)
    assert sum(shares) / len(shares) == pytest.approx(0.65, abs=0.02)
    begins = sum(text.startswith(crop) for text, crop in zip(LONG, crops, strict=True))
    ends = sum(text.endswith(crop) for text, crop in zip(LONG, crops, strict=True))
    assert begins == pytest.approx(ends, rel=0.3)


def test_crops_differ_and_crop_1_ignores_the_crop_count():
    one, two = crops_of(LONG), crops_of(LONG, number=2)
    assert sum(left == right for left, right in zip(one, two, strict=True)) < len(LONG) / 5
    assert crops_of(LONG, crops=3) == one
    assert crops_of(LONG[5:6], start=5) == one[5:6]
    assert crops_of(LONG, start=1000) != one


def test_crops_preserve_punctuation_and_leave_short_texts_whole():
    text = "She  isn't here\t(yet), is she?"
    crops = {crop_words([text], [seed], CropView(), 1)[0] for seed in range(200)}
    assert "isn't here\t(yet)," in crops
    assert all(crop in text and len(crop.split()) >= 2 for crop in crops)
    short = ["Stop!", "Go away", "", " … "]
    assert crops_of(short, least=0.1, most=0.2) == short
    (crop,) = crops_of(["今日はとても天気がいいですね"], least=0.5, most=0.5)  # no spaces: between characters
    assert len(crop) == 7
    assert crop in "今日はとても天気がいいですね"


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("เรียนหนังสือที่ดี", ["เรี", "ย", "น", "ห", "นั", "ง", "สื", "อ", "ที่", "ดี"]),
        ("ខ្ញុំទៅសាលា", ["ខ្ញុំ", "ទៅ", "សា", "លា"]),
        ("တော်ကျောင်း", ["တော်", "ကျော", "င်း"]),
    ],
)
def test_crops_do_not_separate_combining_signs_from_letters(text, cut):
    assert _WORDS.findall(text) == cut
    first, second = halves(text)
    assert first + second == text
    assert second
    crop, again = (crop_words([4 * text], [7], CropView(), number)[0] for number in (1, 2))
    assert len({crop, again, 4 * text}) == 3


@pytest.mark.parametrize("share", [0.2, 0.6])
def test_deletion_removes_the_given_share_and_preserves_word_order(share):
    damaged = deleted(SENTENCES, share=share)
    left = sum(len(WORDS(text)) for text in damaged) / sum(len(WORDS(text)) for text in SENTENCES)
    assert left == pytest.approx(1 - share, abs=0.03)
    for before, after in zip(SENTENCES, damaged, strict=True):
        whole = iter(WORDS(before))
        assert all(word in whole for word in WORDS(after))


def test_deletion_leaves_a_word_and_takes_contractions_and_punctuation_for_words():
    first, *others = deleted(["Hello there, world!", "Stop", "", "…"], share=0.999)
    assert len(WORDS(first)) == 1
    assert others == ["Stop", "", "…"]
    text = "She isn't here (yet), is she?"
    assert deleted([text], share=1e-9) == [text]
    parts = {deleted([text], [seed], share=0.6)[0] for seed in range(200)}
    assert any("is" in WORDS(part) and "n't" not in WORDS(part) for part in parts)
    assert any(WORDS(part)[-1] != "?" for part in parts)


def test_deletion_depends_only_on_text_and_seed():
    one = deleted(SENTENCES)
    assert one == deleted(SENTENCES) != deleted(SENTENCES, range(1000, 1400))
    assert deleted(SENTENCES[5:6], [5]) == one[5:6]
