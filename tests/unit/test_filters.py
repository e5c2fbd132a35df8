"""Verdicts on translations, with sentences one can read."""

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from models.translation.filters import FilterConfig, drop_table, loops, verdict

HE_SLEEPS = "The old man is asleep in his chair."


@pytest.mark.parametrize(
    ("source", "translation", "reason"),
    [
        (HE_SLEEPS, "Der alte Mann schläft in seinem Sessel.", None),
        (HE_SLEEPS, HE_SLEEPS.upper(), "copy"),
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
        (
            "The committee discussed the motion yesterday and finally accepted it with a clear majority.",
            "Ja.",
            "too_short",
        ),
    ],
)
def test_verdict(source: str, translation: str | None, reason: str | None) -> None:
    frame = pl.DataFrame({"s": [source], "t": [translation]}, schema={"s": pl.String, "t": pl.String})
    assert frame.select(verdict(pl.col("s"), pl.col("t"), FilterConfig())).item() == reason


def test_verdicts_stream_as_they_compute() -> None:
    frame = pl.LazyFrame({"s": [HE_SLEEPS] * 3000, "t": ["ja ja ja ja ja", None, "Der Mann schläft."] * 1000})
    query = frame.select(reason=verdict(pl.col("s"), pl.col("t"), FilterConfig()))
    assert_frame_equal(query.collect(engine="streaming"), query.collect())
    assert query.collect()["reason"].to_list() == ["loop", "missing", None] * 1000


def test_the_number_of_repeats_is_a_setting() -> None:
    text = pl.DataFrame({"t": ["so so", "so so so", "so so so so"]})
    assert text.select(loops(pl.col("t"), 2))["t"].to_list() == [False, True, True]


def test_drop_table_counts_and_shows_the_shortest_examples() -> None:
    rows = [
        ("bt-de", "A cat sleeps.", "Eine Katze schläft.", None, None),
        ("bt-de", "OK.", "OK.", None, None),
        ("bt-de", "A dog.", "", "empty", 1),
        ("bt-de", "A very old dog.", "", "empty", 1),
        ("bt-de", "Dogs!", "ja ja ja ja", "loop", 2),
        ("bt-fr", "A cat sleeps.", "Un chat dort.", None, None),
    ]
    judged = pl.LazyFrame(rows, schema=["method", "source", "text", "reason", "hop"], orient="row")
    table = drop_table(judged, examples=1)
    expected = pl.DataFrame(
        [
            ("bt-de", "hop 1: empty", 2, 0.4, ["A dog."], [""]),
            ("bt-de", "hop 2: loop", 1, 0.2, ["Dogs!"], ["ja ja ja ja"]),
            ("bt-de", "kept", 1, 0.2, ["A cat sleeps."], ["Eine Katze schläft."]),
            ("bt-de", "kept: copy of the source", 1, 0.2, ["OK."], ["OK."]),
            ("bt-fr", "kept", 1, 1.0, ["A cat sleeps."], ["Un chat dort."]),
        ],
        schema=["method", "outcome", "n", "share", "source", "text"],
        orient="row",
    )
    assert_frame_equal(table, expected, check_dtypes=False)
