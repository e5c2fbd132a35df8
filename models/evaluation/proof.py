"""Is an adapted encoder better on the text that it was adapted to, and what did that cost elsewhere?

Labels decide: one part of them chooses how much of the training is taken, another is reported. Questions about the text
itself are shown and decide nothing, for they were not seen to predict labels (BENCHMARKS.md, *When BETTER is said*). A
general set may forbid, if its difference has an interval: an encoder whose figure there fell by more than
`max_forgetting` is not handed out, whether or not the fall is sure (`significance.paired.forgets`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from models.evaluation.config import BootstrapConfig
from models.evaluation.labels import Labelled, figure, per_row, row_draws
from models.evaluation.retrieval import Retrieval, reciprocal_ranks
from models.evaluation.significance.hierarchical import difference_of
from models.evaluation.sweep import outcome_draws

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from models.evaluation.retrieval import Encode
    from models.evaluation.significance.hierarchical import BootstrapDraws

Role = Literal["counts", "guard", "shown"]
LABELS: Final = "labels"


class AdaptationEvaluationConfig(BaseModel):
    """What is asked of an adapted encoder."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    questions: int = Field(1000, ge=30)
    """Most questions of a probe."""
    shares: tuple[float, ...] = Field((0.25, 0.5, 0.75, 1.0), min_length=1)
    """How much of the trained weights may be taken, the rest from the start, where labels choose."""
    share: float = Field(0.25, gt=0, le=1)
    """The same where nothing chooses but the text: the largest share after which no labels were seen to fall
    (BENCHMARKS.md, *When BETTER is said*)."""
    max_forgetting: float = Field(0.5, ge=0, le=100)
    """Points (figure × 100) by which a general set whose difference has an interval may fall."""
    bootstrap: BootstrapConfig = BootstrapConfig()
    """How uncertainty is drawn."""
    seed: int = Field(0, ge=0, lt=2**32)
    """Decides which sentences ask, and which labelled rows choose."""


@dataclass(frozen=True)
class Questions:
    """What is asked of an encoder.

    Attributes:
        probes: by name, of held-out text.
        labelled: a half of the labels; None without any.
    """

    probes: Mapping[str, Retrieval]
    labelled: Labelled | None = None


Answers = dict[str, "NDArray[np.float64]"]
"""By probe, reciprocal ranks of its questions; under `labels` what `per_row` gives."""


@dataclass(frozen=True)
class BeforeAfter:
    """One figure before and after; value and interval are differences.

    Attributes:
        evidence: what was asked.
        metric: `MRR`, `Spearman`, `accuracy` or what a general set is judged by, each in [0, 1] or [-1, 1].
        role: whether it decides, may forbid, or is only shown.
        before: figure of the start; NaN of a mean of general sets.
        after: figure of the adapted encoder; NaN of such a mean.
        difference: after less before.
        ci_low: lower end of its 95 % interval; NaN, as the next two, where a general set has none.
        ci_high: upper end.
        p_value: two-sided.
        n: questions or rows.
        among: how many were searched; 0 where nothing is.
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
    """What an encoder answers to all questions."""
    ranks = {name: reciprocal_ranks(encode, probe) for name, probe in questions.probes.items()}
    return ranks | ({LABELS: per_row(encode, questions.labelled)} if questions.labelled else {})


def gain(start: Answers, other: Answers, questions: Questions) -> float:
    """How much better the labels are told; 0 without any."""
    if questions.labelled is None:
        return 0.0
    return figure_of(LABELS, other, questions) - figure_of(LABELS, start, questions)


def choose_share(gains: Mapping[float, float], forgets: Callable[[float], bool]) -> float:
    """How much of the trained weights to take.

    Args:
        gains: by share, the mean difference of what counts.
        forgets: whether a share loses too much on a general set; asked of as few shares as will do.

    Returns:
        The share of the largest gain that forgets little enough. Where none gains, the largest share, so that the
        verdict tells what the training did; where all that gain forget too much, the smallest.
    """
    better = sorted((share for share in gains if gains[share] > 0), key=lambda share: gains[share], reverse=True)
    if not better:
        return max(gains)
    return next((share for share in better if not forgets(share)), min(gains))


def evidence(start: Answers, adapted: Answers, questions: Questions, bootstrap: BootstrapConfig) -> list[BeforeAfter]:
    """All questions, one row each, the labels first."""
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


def figure_of(name: str, made: Answers, questions: Questions) -> float:
    """One figure of an encoder's answers: a mean reciprocal rank, or what `labels.figure` gives."""
    if name == LABELS and questions.labelled is not None:
        return figure(made[name], questions.labelled)
    return float(made[name].mean())


def _row(name: str, metric: str, role: Role, both: Sequence[BootstrapDraws], n: int, among: int = 0) -> BeforeAfter:
    """A figure of the start and of the adapted encoder, drawn alike."""
    start, adapted = both
    found = difference_of([start], [adapted])
    figures = (float(start.figures[0]), float(adapted.figures[0]))
    return BeforeAfter(name, metric, role, *figures, found.value, found.ci_low, found.ci_high, found.p_value, n, among)
