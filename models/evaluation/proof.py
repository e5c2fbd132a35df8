"""Scores of an encoder before and after adaptation: on the user's labels and text, and on general benchmarks.

The score of the use that the user asks for decides; the scores of the other uses are reported. Questions about the text
did not predict the results on labels (BENCHMARKS.md, *When BETTER is said*), so they decide only about search. A
general set whose difference has an interval can veto: an encoder that lost more than `max_forgetting` there is refused,
even if the loss is not significant (`significance.paired.forgets`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

import polars as pl
from pydantic import Field

from bsl.models.evaluation.signature import PLACE, PRINTED
from bsl.models.evaluation.significance.hierarchical import difference_of
from bsl.models.evaluation.sweep import MEAN, mean_of
from bsl.models.evaluation.uses import LABELS, RECIPROCAL_RANK, SPEARMAN, TEXT, USES, UseName, use_answered_by
from bsl.storage.record import Record

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from bsl.models.evaluation.sweep import SetDraws

Role = Literal["decides", "vetoes", "reported"]
Answer = Literal["better", "same", "worse"]
MRR: Final = "MRR"
QUESTIONS: Final = "questions about your text"
"""Mean of several kinds of questions."""
_NO_VETO: Final = (LABELS, TEXT, MEAN, "")  # groups of sets that are no general set, or excluded from decisions
_METRICS: Final = {SPEARMAN: "Spearman", RECIPROCAL_RANK: MRR}


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
class AdaptationComparison:
    """One score before and after adaptation, and the difference with its interval.

    Attributes:
        evidence: `your labels`, the kind of questions, or the general set.
        metric: `MRR`, `Spearman`, `accuracy` or the main metric of a general set, each in [0, 1] or [-1, 1].
        use: The use that the score answers for; None if it is a part of such a score, or of a general set.
        role: Whether the score decides, vetoes if it drops, or is reported only.
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
    use: UseName | None
    role: Role
    before: float
    after: float
    difference: float
    ci_low: float
    ci_high: float
    p_value: float
    n: int

    @property
    def answer(self) -> Answer:
        """Whether the adapted encoder is better or worse; `same` if the interval includes 0."""
        return "better" if self.ci_low > 0 else "worse" if self.ci_high < 0 else "same"


def adaptation_comparisons(
    drawn: Sequence[SetDraws], deciding: UseName | None, trained_on: Collection[str] = ()
) -> list[AdaptationComparison]:
    """Return the scores of the original and the adapted encoder on sets with draws; the deciding score comes first.

    Args:
        drawn: Draws of both encoders; the groups of the user's sets are `LABELS` and `TEXT`.
        deciding: The use that decides; None if nothing does.
        trained_on: Kinds of questions that resemble the training, so that they answer for no use.
    """
    asked = [one for one in drawn if one.group == TEXT and one.dataset not in trained_on]
    means = [replace(mean_of(asked, QUESTIONS, RECIPROCAL_RANK), group=TEXT)] if len(asked) > 1 else []
    searched = next(iter(means or asked), None)
    rows = []
    for found in [*means, *drawn]:
        use = use_answered_by(found.group, found.metric) if found.group != TEXT or found is searched else None
        role: Role = "reported" if found.group in _NO_VETO else "vetoes"
        rows.append(_compared(found, use, "decides" if use and use == deciding else role))
    order = {use: place for place, use in enumerate(USES)}
    return sorted(rows, key=lambda row: (row.role != "decides", order[row.use] if row.use else len(order)))


def _compared(found: SetDraws, use: UseName | None, role: Role) -> AdaptationComparison:
    before, after = found.systems
    gain = difference_of(before, after)
    return AdaptationComparison(
        _name(found.dataset, found.split, found.protocol),
        _METRICS.get(found.metric, found.metric),
        use,
        role,
        float(before.figures[0]),
        float(after.figures[0]),
        gain.value,
        gain.ci_low,
        gain.ci_high,
        gain.p_value,
        found.n,
    )


def comparisons_without_draws(
    before: pl.DataFrame, after: pl.DataFrame, headlines: Mapping[str, Sequence[str]]
) -> list[AdaptationComparison]:
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


def _undrawn(row: Mapping[str, Any]) -> AdaptationComparison:
    nan, name = float("nan"), _name(row["dataset"], row["split"], row["protocol"])
    gain = row["after"] - row["value"]
    figures = (row["value"], row["after"], gain, nan, nan, nan, row["n"])
    return AdaptationComparison(name, row["metric"], None, "reported", *figures)


def _name(dataset: str, split: str, protocol: str) -> str:
    return f"{dataset} {split}{'' if protocol == 'all' else f' ({protocol})'}".strip()
