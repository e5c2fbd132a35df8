"""Scores of an encoder before and after adaptation: on the user's labels and text, and on general benchmarks.

Test labels decide. Questions about the text are reported only, because they did not predict the results on labels
(BENCHMARKS.md, *When BETTER is said*). A general set whose difference has an interval can veto: an encoder that lost
more than `max_forgetting` there is refused, even if the loss is not significant (`significance.paired.forgets`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import polars as pl
from pydantic import Field

from models.evaluation.own_text import METRIC
from models.evaluation.signature import PLACE, PRINTED
from models.evaluation.significance.hierarchical import difference_of
from models.evaluation.sweep import MEAN
from storage.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from models.evaluation.sweep import SetDraws

Role = Literal["counts", "guard", "shown"]
MRR: Final = "MRR"
_ROLES: Final[Mapping[str, Role]] = {"labels": "counts", "text": "shown", MEAN: "shown"}  # group of a set; others veto
_METRICS: Final = {"spearman": "Spearman", METRIC: MRR}


class AdaptationEvaluationConfig(Record):
    """Configuration of the evaluation of an adapted encoder."""

    questions: int = Field(1000, ge=30)
    """Maximal number of questions of a kind."""
    shares: tuple[float, ...] = Field((0.25, 0.5, 0.75, 1.0), min_length=1)
    """Candidate weights of an encoder trained on labels in the interpolation with the original. The largest weight with
    which a general dev set loses at most half of `max_forgetting` is used, or else the smallest weight."""
    share: float = Field(0.25, gt=0, le=1)
    """Weight of an encoder trained on views: the largest with which scores on labels did not drop (BENCHMARKS.md, *When
    BETTER is said*)."""
    max_forgetting: float = Field(0.5, ge=0, le=100)
    """Points (score × 100) that a general set may lose if its difference has an interval."""
    seed: int = Field(0, ge=0, lt=2**32)
    """Seed of the choice of queries, and of the labelled rows for evaluation."""


@dataclass(frozen=True)
class BeforeAfter:
    """One score before and after adaptation, and the difference with its interval.

    Attributes:
        evidence: `your labels`, the kind of questions, or the general set.
        metric: `MRR`, `Spearman`, `accuracy` or the main metric of a general set, each in [0, 1] or [-1, 1].
        role: Whether the score decides (`counts`), can veto (`guard`), or is reported only (`shown`).
        before: Score of the original encoder.
        after: Score of the adapted encoder.
        difference: `after` − `before`.
        ci_low: Lower end of the difference's 95 % interval; this and the next two are NaN if there is no interval.
        ci_high: Upper end.
        p_value: Two-sided.
        n: Number of questions, pairs or rows.
    """

    evidence: str
    metric: str
    role: Role
    before: float
    after: float
    difference: float
    ci_low: float
    ci_high: float
    p_value: float
    n: int


def evidence(drawn: Sequence[SetDraws]) -> list[BeforeAfter]:
    """Return the scores of the original and the adapted encoder on sets with draws; the deciding score comes first."""
    rows = []
    for found in drawn:
        before, after = found.systems
        gain = difference_of(before, after)
        rows.append(
            BeforeAfter(
                _name(found.dataset, found.split, found.protocol),
                _METRICS.get(found.metric, found.metric),
                _ROLES.get(found.group, "guard"),
                float(before.figures[0]),
                float(after.figures[0]),
                gain.value,
                gain.ci_low,
                gain.ci_high,
                gain.p_value,
                found.n,
            )
        )
    return sorted(rows, key=lambda row: row.role != "counts")


def undrawn_evidence(
    before: pl.DataFrame, after: pl.DataFrame, headlines: Mapping[str, Sequence[str]]
) -> list[BeforeAfter]:
    """Return the scores of both encoders on general sets without draws, one score for each set.

    They are reported only: among many sets, one often drops by half a point by chance even if the encoders are equally
    good.

    Args:
        before: The table `scores` of the original encoder.
        after: That of the adapted encoder.
        headlines: Dataset → its main metrics; the first metric with a score is used.
    """
    ranks = [(name, metric, rank) for name, metrics in headlines.items() for rank, metric in enumerate(metrics)]
    ranked = pl.DataFrame(ranks, schema=["dataset", "metric", "rank"], orient="row")
    values = before.filter(PRINTED).join(ranked, on=["dataset", "metric"], maintain_order="left")
    main = values.filter(pl.col("rank") == pl.col("rank").min().over("dataset", "split"))
    both = main.join(after.filter(PRINTED).select(*PLACE, after="value"), on=PLACE, maintain_order="left")
    return [_undrawn(row) for row in both.rows(named=True)]


def _undrawn(row: Mapping[str, Any]) -> BeforeAfter:
    nan, name = float("nan"), _name(row["dataset"], row["split"], row["protocol"])
    gain = row["after"] - row["value"]
    return BeforeAfter(name, row["metric"], "shown", row["value"], row["after"], gain, nan, nan, nan, row["n"])


def _name(dataset: str, split: str, protocol: str) -> str:
    return f"{dataset} {split}{'' if protocol == 'all' else f' ({protocol})'}".strip()
