"""Scores over several seeds: mean, standard deviation, and Student's t interval of the mean."""

from __future__ import annotations

from functools import cache
from math import sqrt

import polars as pl

from bsl.models.errors import EvaluationError
from bsl.models.evaluation.signature import parse_signature, signature
from bsl.models.evaluation.significance.bootstrap import LEVEL


def half_width(sd: float, seeds: int, level: float) -> float:
    """Return half the width of Student's t interval of a mean over two or more seeds."""
    return _quantile((1 + level) / 2, seeds - 1) * sd / sqrt(seeds)


@cache
def _quantile(share: float, freedom: int) -> float:
    from scipy.stats import t  # slow import, which the command does not need

    return float(t.ppf(share, freedom))


def over_seeds(scores: pl.DataFrame) -> pl.DataFrame:
    """Compute mean and standard deviation of each score over seeds.

    Args:
        scores: Rows of the table `scores`, one for each score and seed.

    Returns:
        Rows with the same columns: protocol `<protocol>-mean` with Student's 95 % interval of the mean, and
        `<protocol>-sd` without an interval; `n` is the number of seeds, and `seed` the smallest seed.

    Raises:
        EvaluationError: There are fewer than two seeds, or some seed lacks a score.
    """
    names = ["model", "dataset", "subset", "split", "metric", "protocol"]
    seeds = scores["seed"].n_unique()
    if seeds < 2:
        raise EvaluationError(f"{seeds} seed, expected at least 2 for a standard deviation. Give more seeds.")
    groups = scores.group_by(names, maintain_order=True).agg(
        mean=pl.col("value").mean(),
        sd=pl.col("value").std(),
        n=pl.len().cast(pl.UInt32),
        seed=pl.col("seed").min(),
        checkpoint=pl.col("checkpoint").first(),
        signature=pl.col("signature").first(),
    )
    uneven = groups.filter(pl.col("n") != seeds)
    if uneven.height:
        raise EvaluationError(
            f"{uneven.row(0)[:6]} has {uneven['n'][0]} of {seeds} seeds. Score all seeds on the same sets."
        )
    margin = pl.Series([half_width(sd, seeds, LEVEL) for sd in groups["sd"]])
    means = groups.with_columns(
        protocol=pl.col("protocol") + "-mean",
        signature=_signatures(groups, "-mean"),
        value="mean",
        ci_low=pl.col("mean") - margin,
        ci_high=pl.col("mean") + margin,
    )
    spreads = groups.with_columns(
        protocol=pl.col("protocol") + "-sd",
        signature=_signatures(groups, "-sd"),
        value="sd",
        ci_low=pl.lit(None, pl.Float64),
        ci_high=pl.lit(None, pl.Float64),
    )
    return pl.concat([means, spreads]).select(scores.columns)


def _signatures(groups: pl.DataFrame, what: str) -> pl.Series:
    """Return the signatures of scores over seeds, with the new protocol and the number of seeds."""
    parsed = [(parse_signature(line), n) for line, n in groups.select("signature", "n").rows()]
    return pl.Series([signature(fields | {"protocol": fields["protocol"] + what, "seeds": n}) for fields, n in parsed])
