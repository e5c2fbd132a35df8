"""Is an adapted encoder better on the text that it was adapted to, and what did that cost elsewhere?

Two halves of what was held out: one chooses how much of the training is taken, the other is reported. What decides:
labels where there are any, else the mean of the probes that were seen to predict labels (`questions.PREDICTS`) and on
which the start does better than a guess; the others are shown. A general set may forbid, if its difference has an
interval: an encoder whose figure there fell by more than `max_forgetting` is not handed out, whether or not the fall is
sure (`significance.paired.forgets`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from models.evaluation.config import BootstrapConfig
from models.evaluation.labels import Labelled, compare_labelled, figure, per_row
from models.evaluation.questions import PREDICTS
from models.evaluation.retrieval import Retrieval, compare_ranks, reciprocal_ranks, tells

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from models.evaluation.retrieval import Encode
    from models.evaluation.significance.paired import Difference

Role = Literal["counts", "guard", "shown"]
LABELS: Final = "labels"
MEAN: Final = "mean of what counts"


class ProofConfig(BaseModel):
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
class Evidence:
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


def counted(start: Answers, questions: Questions) -> tuple[str, ...]:
    """What decides: the labels, else the probes that predict labels, if the start can answer them."""
    if questions.labelled is not None:
        return (LABELS,)
    predicting = [name for name in questions.probes if name in PREDICTS]
    return tuple(name for name in predicting if tells(start[name], questions.probes[name]))


def gain(start: Answers, other: Answers, questions: Questions, counts: Sequence[str]) -> float:
    """The mean difference of what counts; 0 where nothing does."""
    values = [figure_of(name, other, questions) - figure_of(name, start, questions) for name in counts]
    return float(np.mean(values)) if values else 0.0


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


def evidence(
    start: Answers, adapted: Answers, questions: Questions, counts: Sequence[str], bootstrap: BootstrapConfig
) -> list[Evidence]:
    """All questions, one row each; the mean of several probes that count stands first."""
    drawn = {"resamples": bootstrap.resamples, "seed": bootstrap.seed}
    rows = []
    probes = {name: questions.probes[name] for name in counts if name in questions.probes}
    if len(probes) > 1:
        means = [float(np.mean([made[name].mean() for name in probes])) for made in (start, adapted)]
        rows.append(
            _row(MEAN, "MRR", "counts", means, compare_ranks(start, adapted, probes, **drawn), [*probes.values()])
        )
    for name, probe in questions.probes.items():
        role: Role = "counts" if name in probes else "shown"
        difference = compare_ranks(start, adapted, {name: probe}, **drawn)
        means = [float(made[name].mean()) for made in (start, adapted)]
        rows.append(_row(name, "MRR", role, means, difference, [probe]))
    if questions.labelled is not None:
        own = questions.labelled
        difference = compare_labelled(start[LABELS], adapted[LABELS], own, **drawn)
        figures = [figure(made[LABELS], own) for made in (start, adapted)]
        rows.insert(0, _row(LABELS, own.metric, "counts", figures, difference, [own]))
    return rows


def figure_of(name: str, made: Answers, questions: Questions) -> float:
    """One figure of an encoder's answers: a mean reciprocal rank, or what `labels.figure` gives."""
    if name == LABELS and questions.labelled is not None:
        return figure(made[name], questions.labelled)
    return float(made[name].mean())


def _row(
    name: str,
    metric: str,
    role: Role,
    figures: Sequence[float],
    difference: Difference,
    asked: Sequence[Retrieval | Labelled],
) -> Evidence:
    among = max(len(asking.targets) if isinstance(asking, Retrieval) else 0 for asking in asked)
    before, after = figures
    spread = (difference.value, difference.ci_low, difference.ci_high, difference.p_value)
    return Evidence(name, metric, role, before, after, *spread, sum(map(len, asked)), among)
