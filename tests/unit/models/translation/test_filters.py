"""Filters of translations: the reason to drop one, on readable sentences."""

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from bsl.models.translation import filters
from bsl.models.translation.filters import (
    FILTERS,
    LanguageFilter,
    OverlapFilter,
    Texts,
    count_drops,
    drop_table,
    loops,
    overlap,
    translation_reason,
    view_reason,
)
from tests.every import every

HE_SLEEPS = "The old man is asleep in his chair."
FRENCH = "Le vieil homme dort dans son fauteuil."
BOTH = Texts(pl.col("s"), pl.col("t"))


def reason_of(source, translation, used=FILTERS, lang=None):
    frame = pl.DataFrame({"s": [source], "t": [translation]}, schema={"s": pl.String, "t": pl.String})
    return frame.select(translation_reason(Texts(pl.col("s"), pl.col("t"), lang), used)).item()


@every([
    (HE_SLEEPS, "Der alte Mann schläft in seinem Sessel.", None),
    (HE_SLEEPS, HE_SLEEPS.upper(), "copy"),
    ("THE PARCEL CAME TOO LATE.", "The parliament is in session.", "capitals"),
    ("NEW YORK, USA", "Neu York, USA", "capitals"),
    ("NEW YORK", "Neu York", None),
    ("彼は家にいた。", "He was at home.", None),  # a script without case
    ("Angela Merkel, Berlin.", "Angela Merkel, Berlin.", None),  # a short copy may be right
    (HE_SLEEPS, None, "missing"),
    (HE_SLEEPS, "", "empty"),
    (HE_SLEEPS, " \n", "empty"),
    (HE_SLEEPS, "Der alte Mann Mann Mann Mann schläft.", "loop"),
    (HE_SLEEPS, "Der alte Mann Mann Mann schläft.", None),
    (HE_SLEEPS, "in his chair, in his chair, in his chair, in his chair, in his chair", "loop"),
    (HE_SLEEPS, "Er schlääääääääääääääääääft.", "loop"),
    (HE_SLEEPS, "hahahahahahahahahahaha", "loop"),
    (HE_SLEEPS, "Donaudampfschifffahrtsgesellschaftskapitän", None),
    ("No no no no no!", "Nein nein nein nein nein!", None),  # the source repeats itself too
    ("Yes.", "Ja, das ist so.", None),
    ("Yes.", "Der Ausschuss hat gestern über den Antrag beraten und ihn am Ende angenommen.", "too_long"),
    ("The committee discussed the motion yesterday and accepted it with a clear majority.", "Ja.", "too_short"),
])  # fmt: skip
def test_filters_return_the_reason_to_drop_a_translation(source, translation, reason):
    assert reason_of(source, translation) == reason


@every([(HE_SLEEPS, None), ("ja " * 200, None), ("J", None), ("El viejo.", None), ("", "empty"), (None, "missing")])
def test_no_filter_drops_only_missing_or_empty_translations(translation, reason):
    assert reason_of(HE_SLEEPS, translation, (), "de") == reason
    if translation:
        assert pl.DataFrame({"s": [HE_SLEEPS], "t": [translation]}).select(view_reason(BOTH, ())).item() is None


@every([
    ("Der alte Mann schläft in seinem Sessel.", "de", None),
    (FRENCH, "de", "language"),
    ("The old man sleeps in that chair of his.", "de", "language"),  # paraphrased, not translated
    ("الرجل العجوز نائم في كرسيه.", "ar", None),
    ("Yaşlı adam koltuğunda uyuyor.", "tr", None),
    ("El anciano duerme en su silla.", "es", None),
    ("Okay, Berlin!", "de", None),  # too short to identify
    (FRENCH, "tlh", None),  # a language unknown to the identifier
    (FRENCH, None, None),
])  # fmt: skip
def test_only_translations_clearly_in_another_language_are_dropped(translation, lang, reason):
    assert reason_of(HE_SLEEPS, translation, lang=lang) == reason
    others = [one for one in FILTERS if not isinstance(one, LanguageFilter)]
    assert reason_of(HE_SLEEPS, translation, others, lang) is None


@every([
    ("the OLD man is asleep in his chair", 1.0, "too_close"),
    ("The old man is asleep in a chair.", 14 / 16, None),
    ("Grandfather sleeps.", 0.0, "too_far"),
])  # fmt: skip
def test_views_too_close_or_too_far_are_dropped_on_request(view, shared, reason):
    frame = pl.DataFrame({"s": [HE_SLEEPS], "t": [view]})
    assert frame.select(overlap(pl.col("s"), pl.col("t"))).item() == pytest.approx(shared)
    assert frame.select(view_reason(BOTH, (OverlapFilter(least=0.2, most=0.95),))).item() == reason
    assert frame.select(view_reason(BOTH, FILTERS)).item() is None


def test_streamed_verdicts_equal_in_memory_verdicts():
    frame = pl.LazyFrame({"s": [HE_SLEEPS] * 3000, "t": ["ja ja ja ja ja", None, "Der Mann schläft."] * 1000})
    query = frame.select(reason=translation_reason(BOTH, FILTERS))
    assert_frame_equal(query.collect(engine="streaming"), query.collect())
    assert query.collect()["reason"].to_list() == ["loop", "missing", None] * 1000


def test_loops_uses_the_given_number_of_repeats():
    text = pl.DataFrame({"t": ["so so", "so so so", "so so so so"]})
    assert text.select(loops(pl.col("t"), 2))["t"].to_list() == [False, True, True]


def test_drop_table_counts_and_shows_the_shortest_examples(monkeypatch):
    rows = [
        ("bt-de", "A cat sleeps.", "Eine Katze schläft.", None, None),
        ("bt-de", "OK.", "OK.", None, None),
        ("bt-de", "A dog.", "", "empty", 1),
        ("bt-de", "A very old dog.", "", "empty", 1),
        ("bt-de", "Dogs!", "ja ja ja ja", "loop", 2),
        ("bt-fr", "A cat sleeps.", "Un chat dort.", None, None),
    ]
    judged = pl.LazyFrame(rows, schema=["method", "source", "text", "reason", "hop"], orient="row")
    monkeypatch.setattr(filters, "EXAMPLES", 1)
    table = drop_table([count_drops(lot) for lot in (judged.slice(0, 3), judged.slice(3))])
    assert table.select("method", "outcome", "n", "share", "source", "text").rows() == [
        ("bt-de", "hop 1: empty", 2, 0.4, ["A dog."], [""]),
        ("bt-de", "hop 2: loop", 1, 0.2, ["Dogs!"], ["ja ja ja ja"]),
        ("bt-de", "kept", 1, 0.2, ["A cat sleeps."], ["Eine Katze schläft."]),
        ("bt-de", "kept: copy of the source", 1, 0.2, ["OK."], ["OK."]),
        ("bt-fr", "kept", 1, 1.0, ["A cat sleeps."], ["Un chat dort."]),
    ]
