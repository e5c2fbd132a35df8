"""STS protocols over subsets, computed by hand."""

import numpy as np
import polars as pl
import pytest

from bsl.models.errors import EvaluationError
from bsl.models.evaluation.correlation import pearson, spearman
from bsl.models.evaluation.sts import sts_scores

ROWS = pl.DataFrame(
    {
        "subset": ["images"] * 4 + ["news"] * 6,
        "gold": [5.0, 3.0, 1.0, 0.0, 4.0, 4.0, 2.0, 1.0, 0.0, 5.0],
        "cosine": [0.9, 0.8, 0.2, 0.3, 0.5, 0.7, 0.6, 0.1, 0.2, 0.4],
    }
)


def figures(rows=ROWS, **options):
    return {(r.metric, r.protocol, r.subset): r for r in sts_scores(rows, dataset="sts99", split="test", **options)}


def test_sts_scores_cover_three_protocols_and_every_subset():
    found = figures()
    assert len(found) == 2 * (1 + 2 + 2)
    for metric, correlation in (("spearman", spearman), ("pearson", pearson)):
        images = correlation(ROWS["cosine"][:4], ROWS["gold"][:4])
        news = correlation(ROWS["cosine"][4:], ROWS["gold"][4:])
        assert found[metric, "all", "images"].value == pytest.approx(images)
        assert found[metric, "all", "all"].value == pytest.approx(correlation(ROWS["cosine"], ROWS["gold"]))
        assert found[metric, "mean", "all"].value == pytest.approx((images + news) / 2)
        assert found[metric, "wmean", "all"].value == pytest.approx((4 * images + 6 * news) / 10)
    assert {r.n for r in found.values() if r.subset == "all"} == {10}
    assert found["spearman", "all", "images"].n == 4

    assert list(figures(ROWS.with_columns(subset=pl.lit("all")))) == [
        (m, "all", "all") for m in ("spearman", "pearson")
    ]


def test_every_score_has_an_interval_fixed_by_the_seed():
    assert all(r.ci_low <= r.value <= r.ci_high for r in figures(resamples=300).values())
    assert figures(seed=1) == figures(seed=1)
    assert figures(seed=1)["spearman", "all", "all"].ci_low != figures(seed=2)["spearman", "all", "all"].ci_low


@pytest.mark.parametrize("metric", ["spearman", "pearson"])
def test_mean_of_four_subsets_halves_the_interval_width(metric):
    """With independent draws, means of k similar subsets spread by 1/√k; with shared draws, as much as one subset."""
    generator = np.random.default_rng(0)
    gold = generator.normal(size=150)
    one = pl.DataFrame({"gold": gold, "cosine": gold + generator.normal(size=150)})
    rows = pl.concat([one.with_columns(subset=pl.lit(name)) for name in ("images", "news", "tweets", "forums")])
    found = figures(rows)
    widths = [found[metric, "all", name].ci_high - found[metric, "all", name].ci_low for name in ("images", "news")]
    for protocol in ("mean", "wmean"):
        row = found[metric, protocol, "all"]
        assert (row.ci_high - row.ci_low) / np.mean(widths) == pytest.approx(0.5, rel=0.15)


def test_translations_of_the_same_pairs_do_not_narrow_an_interval():
    """Regression: three translations of STS-B counted as 4,137 independent pairs."""
    generator = np.random.default_rng(0)
    gold = generator.normal(size=150)
    one = pl.DataFrame({"gold": gold, "cosine": gold + generator.normal(size=150), "unit": range(150)})
    rows = pl.concat([one.with_columns(subset=pl.lit(name)) for name in ("en-de", "en-fr")])
    found = figures(rows, resamples=200)
    for metric in ("spearman", "pearson"):
        ends = [
            (row.ci_low, row.ci_high)
            for row in (found[metric, protocol, "all"] for protocol in ("all", "mean", "wmean"))
        ]
        german = found[metric, "all", "en-de"]
        assert ends == [pytest.approx((german.ci_low, german.ci_high))] * 3


def gold_of_news(gold):
    return ROWS.with_columns(gold=pl.when(pl.col("subset") == "news").then(gold).otherwise("gold"))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (ROWS.drop("gold"), r"sts99 test: columns \['gold'\] are missing"),
        (ROWS.clear(), "sts99 test: no pairs"),
        (gold_of_news(None), "row 4 is not finite"),
        (gold_of_news(1.0), "sts99 test news .*all 6"),
        (ROWS.head(5), "sts99 test news .*1 scored pairs"),
    ],
)
def test_invalid_sts_rows_error_names_the_set(rows, message):
    with pytest.raises(EvaluationError, match=message):
        figures(rows)
