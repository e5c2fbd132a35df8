"""Verdicts of a run: only sets that did not choose the encoder count, and only intervals without zero decide."""

import polars as pl

from bsl.models.evaluation.sweep import MEAN
from bsl.models.evaluation.verdict import verdict_of
from tests.every import every

SYSTEMS = ("before BSL (mean)", "after BSL")
GENTLER = "Lower training.lr."


def rows(*figures, model="after BSL"):
    names = ("dataset", "split", "value", "ci_low", "ci_high", "p_value")
    made = {"model": model, "reference": SYSTEMS[0], "metric": "spearman"}
    return pl.DataFrame([made | dict(zip(names, figure, strict=True)) for figure in figures])


@every(
    [
        ((0.05, 0.01, 0.09, 0.01), "BETTER"),
        ((-0.05, -0.09, -0.01, 0.01), "WORSE"),
        ((0.02, -0.01, 0.05, 0.2), "NO DIFFERENCE"),
        ((-0.02, -0.05, 0.0, 0.06), "NO DIFFERENCE"),
        ((0.0005, 0.0001, 0.0009, 0.01), "NO DIFFERENCE"),
        ((-0.0005, -0.0009, -0.0001, 0.01), "NO DIFFERENCE"),
    ]
)
def test_verdict_requires_relevant_difference_and_interval_without_zero(figure, word):
    found = verdict_of(rows(("stsb", "test", *figure)), SYSTEMS, "embedded:stsb/dev", GENTLER, kept_start=False)
    assert found.word == word
    assert f"{100 * figure[0]:+.2f}" in found.reason
    assert "stsb test" in found.sentence


def test_dev_set_used_for_selection_gives_not_tested():
    dev = rows(("stsb", "dev", 0.5, 0.4, 0.6, 0.001))
    assert verdict_of(dev, SYSTEMS, "stsb/dev", GENTLER, kept_start=False).word == "NOT TESTED"
    assert verdict_of(None, SYSTEMS, "stsb/dev", GENTLER, kept_start=False).word == "NOT TESTED"
    assert verdict_of(dev, SYSTEMS, None, GENTLER, kept_start=False).word == "BETTER"


def test_mean_of_test_sets_decides_the_verdict():
    figures = rows(("sts12", "test", 0.2, 0.1, 0.3, 0.01), (MEAN, "test", -0.1, -0.2, -0.05, 0.01))
    found = verdict_of(figures, SYSTEMS, "stsb/dev", GENTLER, kept_start=False)
    assert found.word == "WORSE"
    assert f"on {MEAN} test" in found.reason


def test_verdict_ignores_rows_of_other_encoders():
    figures = rows(("stsb", "test", 0.2, 0.1, 0.3, 0.01), model="after BSL + whitening")
    assert verdict_of(figures, SYSTEMS, "stsb/dev", GENTLER, kept_start=False).word == "NOT TESTED"


def test_original_encoder_selected_on_dev_gives_no_difference():
    found = verdict_of(rows(("stsb", "test", 0.0, 0.0, 0.0, 1.0)), SYSTEMS, "stsb/dev", GENTLER, kept_start=True)
    assert found.word == "NO DIFFERENCE"
    assert "you get the original encoder" in found.sentence
    assert found.advice.startswith("Use the original encoder. ")


def test_worse_verdict_includes_the_advice_of_the_caller():
    worse = rows(("stsb", "test", -0.2, -0.3, -0.1, 0.01))
    assert (
        verdict_of(worse, SYSTEMS, "stsb/dev", GENTLER, kept_start=False).advice
        == f"Use the original encoder. {GENTLER}"
    )


def test_test_set_takes_precedence_over_dev_set():
    figures = rows(("stsb", "dev", 0.03, 0.01, 0.05, 0.01), ("stsb", "test", -0.02, -0.04, -0.01, 0.01))
    found = verdict_of(figures, SYSTEMS, None, GENTLER, kept_start=False)
    assert found.word == "WORSE"
    assert "on stsb test" in found.reason
