"""A comparison of runs is decided by sets that chose neither encoder; otherwise its sentence says so."""

import polars as pl

from models.evaluation.sweep import MEAN
from tasks.reporting.comparison import findings

BETTER, WORSE = (0.05, 0.01, 0.09, 0.01), (-0.05, -0.09, -0.01, 0.01)


def said(*figures, devs):
    names = ("dataset", "split", "value", "ci_low", "ci_high", "p_value")
    made = {"model": "B", "reference": "A", "metric": "spearman"}
    comparison = pl.DataFrame([made | dict(zip(names, figure, strict=True)) for figure in figures])
    (sentence,) = findings(comparison, devs)
    return sentence


def test_a_set_that_chose_an_encoder_decides_nothing_wherever_it_stands():
    test, dev = ("stsb", "test", *WORSE), ("stsb", "dev", *BETTER)
    devs = {"A": "stsb/dev", "B": "stsb/dev"}
    assert "B is worse than A" in said(test, dev, devs=devs)
    assert said(test, dev, devs=devs) == said(dev, test, devs=devs)
    other = ("sickr", "test", *BETTER)
    assert "on stsb test, p" in said(test, other, devs={"A": "", "B": "sickr/test"})


def test_the_mean_of_the_test_sets_speaks_for_them():
    assert f"better than A: Spearman × 100 +5.00 [+1.00, +9.00] on {MEAN} test" in said(
        ("sts12", "test", *WORSE), (MEAN, "test", *BETTER), ("stsb", "dev", *WORSE), devs={"A": "stsb/dev", "B": ""}
    )


def test_where_only_dev_was_compared_the_sentence_says_what_that_is():
    dev = ("stsb", "dev", *BETTER)
    assert "on stsb dev, which chose the encoder, p 0.010." in said(dev, devs={"A": "", "B": "stsb/dev"})
    assert "on stsb dev, p 0.010." in said(dev, devs={"A": "", "B": ""})
