"""The table of an encoder's exported forms."""

import numpy as np
import polars as pl

from bsl.models.evaluation.sts import sts_scores
from bsl.tasks.serving.measures import Variant, variant_rows


def test_variant_speed_shows_the_range_over_passes():
    gold = np.arange(20.0)
    whole = Variant("fp32", ".", 1.0, 8, (900.0, 1000.0, 950.0), gold / 20)
    slow = Variant("other", "other", 1.0, 8, (500.0,), gold / 20)
    rows = variant_rows([whole, slow], gold)
    assert [row["sentences/s"] for row in rows] == ["1,000 [900 to 1,000]", "500"]
    assert [row["speedup"] for row in rows] == ["1.0", "0.5"]


def test_interval_of_a_form_is_that_of_bsl_evaluate():
    random = np.random.default_rng(0)
    gold = random.integers(0, 26, 200) / 5
    cosines = gold / 5 + random.normal(0, 0.3, 200)
    (shown,) = variant_rows([Variant("fp32", ".", 1.0, 8, (1.0,), cosines)], gold)
    pairs = pl.DataFrame({"subset": "all", "cosine": cosines, "gold": gold})
    score = next(row for row in sts_scores(pairs, dataset="stsb", split="test") if row.metric == "spearman")
    assert shown["STS-B test"] == f"{100 * score.value:.2f} [{100 * score.ci_low:.1f}, {100 * score.ci_high:.1f}]"
