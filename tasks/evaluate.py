"""An object that embeds text, scored on the papers' sets from Python: no flow, no store, no model folder."""

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from models.evaluation.config import BootstrapConfig
from models.evaluation.objects import TextEncoder, evaluate_pairs
from tasks.resolve import read_scored_set
from tasks.site import Site
from tasks.suites import available, names_of, scored_of


@dataclass(frozen=True)
class Evaluation:
    """What an evaluation gives.

    Attributes:
        scores: one row a figure: dataset, subset, split, metric, protocol, value, n, ci_low, ci_high.
        missing: set that could not be had → why, and what to do.
    """

    scores: pl.DataFrame
    missing: dict[str, str]


def evaluate(
    encoder: TextEncoder,
    suite: Iterable[str] = ("sts",),
    site: Site | None = None,
    bootstrap: BootstrapConfig | None = None,
) -> Evaluation:
    """Score any object with `encode(list[str]) -> array` on suites or sets.

    Args:
        encoder: is given each unique sentence once.
        suite: `sts`, `sts17`, `all`, …, or sets as `<name>/<split>`.
        site: its `mirror` is where the sets are; without one they come from the Hub.
        bootstrap: how intervals are drawn.

    Raises:
        UnknownSuiteError: a suite does not exist.
        SourceError: none of its sets can be had.
        EvaluationError: the object's vectors cannot be scored; the message names data set, row and sentence.
    """
    how = bootstrap or BootstrapConfig()
    sets, missing = available(site or Site(), names_of(suite))
    pairs = {(one.dataset, one.split): read_scored_set(one) for one in scored_of(sets)}
    return Evaluation(evaluate_pairs(encoder, pairs, resamples=how.resamples, seed=how.seed), missing)
