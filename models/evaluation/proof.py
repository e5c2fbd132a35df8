"""Compare an encoder before and after adaptation, on held-out text and on general benchmarks.

Test labels decide. Questions about the text are reported only, because they did not predict the results on labels
(BENCHMARKS.md, *When BETTER is said*). A general set whose difference has an interval can veto: an encoder that lost
more than `max_forgetting` there is refused, even if the loss is not significant (`significance.paired.forgets`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field

from models.evaluation.config import BootstrapConfig
from models.evaluation.labels import Labelled, per_row, row_draws
from models.evaluation.retrieval import Retrieval, reciprocal_ranks
from models.evaluation.significance.hierarchical import difference_of
from models.evaluation.sweep import outcome_draws
from storage.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from models.evaluation.retrieval import Encode
    from models.evaluation.significance.hierarchical import BootstrapDraws

Role = Literal["counts", "guard", "shown"]
LABELS: Final = "labels"


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
    bootstrap: BootstrapConfig = BootstrapConfig()
    """Bootstrap of the confidence intervals."""
    seed: int = Field(0, ge=0, lt=2**32)
    """Seed of the choice of queries, and of the labelled rows for evaluation."""


@dataclass(frozen=True)
class Questions:
    """Questions about held-out text, and labels.

    Attributes:
        probes: Retrieval questions by kind.
        labelled: Test labels; None without labels.
    """

    probes: Mapping[str, Retrieval]
    labelled: Labelled | None = None


Answers = dict[str, "NDArray[np.float64]"]
"""Kind of questions → reciprocal rank of each question; `labels` → values of `per_row`."""


@dataclass(frozen=True)
class BeforeAfter:
    """One score before and after adaptation, and the difference with its interval.

    Attributes:
        evidence: `labels`, the kind of questions, or the general set.
        metric: `MRR`, `Spearman`, `accuracy` or the main metric of a general set, each in [0, 1] or [-1, 1].
        role: Whether the score decides (`counts`), can veto (`guard`), or is reported only (`shown`).
        before: Score of the original encoder; NaN for a mean of general sets.
        after: Score of the adapted encoder; NaN for a mean of general sets.
        difference: `after` − `before`.
        ci_low: Lower end of the difference's 95 % interval; this and the next two are NaN if there is no interval.
        ci_high: Upper end.
        p_value: Two-sided.
        n: Number of questions or rows.
        among: Number of texts that are searched; 0 for other scores than retrieval.
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
    among: int


def answers(encode: Encode, questions: Questions) -> Answers:
    """Return an encoder's answers to all questions and labels."""
    ranks = {name: reciprocal_ranks(encode, probe) for name, probe in questions.probes.items()}
    return ranks | ({LABELS: per_row(encode, questions.labelled)} if questions.labelled else {})


def evidence(start: Answers, adapted: Answers, questions: Questions, bootstrap: BootstrapConfig) -> list[BeforeAfter]:
    """Return one row for the labels, if any, then one for each kind of questions."""
    drawn = {"resamples": bootstrap.resamples, "seed": bootstrap.seed}
    rows = []
    if (labelled := questions.labelled) is not None:
        gold = labelled.gold if labelled.kind == "pairs" else None
        both = row_draws([start[LABELS][None], adapted[LABELS][None]], gold, **drawn)
        rows.append(_row(LABELS, labelled.metric, "counts", both, len(labelled)))
    for name, probe in questions.probes.items():
        both = outcome_draws([start[name][None], adapted[name][None]], probe.unit, **drawn)
        rows.append(_row(name, "MRR", "shown", both, len(probe), len(probe.targets)))
    return rows


def _row(name: str, metric: str, role: Role, both: Sequence[BootstrapDraws], n: int, among: int = 0) -> BeforeAfter:
    """Return a score of the original and of the adapted encoder; both have the same bootstrap draws."""
    start, adapted = both
    found = difference_of([start], [adapted])
    figures = (float(start.figures[0]), float(adapted.figures[0]))
    return BeforeAfter(name, metric, role, *figures, found.value, found.ci_low, found.ci_high, found.p_value, n, among)
