"""Cropped views: the length and start of each crop, and texts that stay whole."""

import pytest
from pydantic import ValidationError

from bsl.models.views.config import CropView
from bsl.models.views.cropping import _WORDS, crop_words, halves
from tests.tiny_marian import SENTENCES

LONG = [f"{first} {second}" for first, second in zip(SENTENCES, SENTENCES[::-1], strict=True)]


def crops_of(texts, view=CropView(), number=1, start=0):  # noqa: B008 - frozen
    return crop_words(texts, range(start, start + len(texts)), view, number)


def test_crop_is_a_contiguous_span_within_the_share_limits():
    shares = []
    for text, crop in zip(LONG, crops_of(LONG), strict=True):
        assert crop in text
        words, kept = text.split(), crop.split()
        assert any(words[start : start + len(kept)] == kept for start in range(len(words)))
        shares.append(len(kept) / len(words))
    assert min(shares) == pytest.approx(0.4, abs=0.06)
    assert max(shares) == pytest.approx(0.9, abs=0.06)
    assert sum(shares) / len(shares) == pytest.approx(0.65, abs=0.02)
    begins = sum(text.startswith(crop) for text, crop in zip(LONG, crops_of(LONG), strict=True))
    ends = sum(text.endswith(crop) for text, crop in zip(LONG, crops_of(LONG), strict=True))
    assert begins == pytest.approx(ends, rel=0.3)


def test_crops_differ_and_crop_1_ignores_the_crop_count():
    one, two = crops_of(LONG), crops_of(LONG, number=2)
    assert sum(left == right for left, right in zip(one, two, strict=True)) < len(LONG) / 5
    assert crops_of(LONG, CropView(crops=3)) == one
    assert crops_of(LONG[5:6], start=5) == one[5:6]
    assert crops_of(LONG, start=1000) != one


def test_crops_preserve_punctuation_and_leave_short_texts_whole():
    text = "She  isn't here\t(yet), is she?"
    crops = {crop_words([text], [seed], CropView(), 1)[0] for seed in range(200)}
    assert "isn't here\t(yet)," in crops
    assert all(crop in text and len(crop.split()) >= 2 for crop in crops)
    short = ["Stop!", "Go away", "", " … "]
    assert crops_of(short, CropView(least=0.1, most=0.2)) == short


def test_text_without_spaces_is_cropped_between_characters():
    (crop,) = crops_of(["今日はとても天気がいいですね"], CropView(least=0.5, most=0.5))
    assert len(crop) == 7
    assert crop in "今日はとても天気がいいですね"


def test_least_share_above_most_share_is_refused():
    with pytest.raises(ValidationError, match=r"least is 0\.9, expected at most the value of most \(0\.4\)"):
        CropView(least=0.9, most=0.4)


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
