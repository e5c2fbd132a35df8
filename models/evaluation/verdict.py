"""Verdicts on a trained encoder: one word, the difference with its interval and p-value, and advice."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any, Final, Literal

import polars as pl

from models.evaluation.proof import MRR, BeforeAfter
from models.evaluation.signature import signed
from models.evaluation.significance.paired import forgets
from models.evaluation.sweep import MEAN

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

Word = Literal["BETTER", "NO DIFFERENCE", "WORSE", "NOT PROVED", "NOT TESTED", "STOPPED"]
STOPPED: Final = "STOPPED"
_GENTLER: Final = (
    "You get the original encoder. Train more gently: lower training.lr (raw_lr for a bare transformer) or "
    "training.max_steps, raise training.objective.anchor_weight (raw_anchor for a bare transformer), or give more "
    "text. After training on labels, set these fields of label_training instead (classes: class_anchor in the place of "
    "its anchor_weight)."
)
RELEVANT: Final = 0.5  # points; thousands of pairs make smaller, irrelevant differences significant
_DETECTABLE: Final = 0.02  # difference that labels should detect
_FEWEST_ROWS: Final = 400  # minimum to recommend: such a difference is then eight rows
_UNTESTED: Final = "no set of scored pairs was evaluated, except the dev set that selected the encoder"


@dataclass(frozen=True)
class Verdict:
    """Verdict of a run on its encoder.

    Attributes:
        word: One of `Word`.
        reason: The difference, its set, interval and p-value.
        advice: Recommended next step.
    """

    word: Word
    reason: str
    advice: str

    @property
    def found(self) -> str:
        """Reason and advice, as pages print them after the word."""
        return (
            f"{'than the original encoder: ' if self.word in ('BETTER', 'WORSE') else ''}{self.reason}. {self.advice}"
        )


def verdict_of(
    comparison: pl.DataFrame | None,
    systems: tuple[str, ...],
    dev: str | None,
    gentler: str,
    *,
    kept_start: bool,
    finding: str = "",
) -> Verdict:
    """Return the verdict on a trained encoder, compared with the original.

    Args:
        comparison: The table `comparison`; None if nothing was compared.
        systems: Names of the encoders in the table: the original, then the encoder after each training.
        dev: Dev set that selected the encoder, as `<dataset>/<split>`; scores on it are not used.
        gentler: Advice if training did harm.
        kept_start: Whether dev selection kept the original encoder.
        finding: Reason why training was stopped as harmful; empty if it was not.
    """
    if finding:
        evaluated = "the original encoder" if kept_start else "the best checkpoint before that"
        return Verdict(STOPPED, finding, f"The figures are of {evaluated}.")
    if kept_start:
        reason = f"no training step improved the score on {dev}, so you get the original encoder"
        return Verdict("NO DIFFERENCE", reason, f"Use the original encoder. {gentler}")
    row = telling_row(comparison, systems, {(dev or "").removeprefix("embedded:")})
    if row is None:
        return Verdict("NOT TESTED", _UNTESTED, "Name test sets in evaluation.sets, such as sts or stsb/test.")
    reason = (
        f"Spearman × 100 {signed(row['value'], row['ci_low'], row['ci_high'])} on {row['dataset']} {row['split']}, "
        f"p {row['p_value']:.3f}"
    )
    significant = row["ci_low"] > 0 or row["ci_high"] < 0
    if significant and abs(row["value"]) < RELEVANT / 100:
        advice = f"The difference is significant but below {RELEVANT:g} points: the original encoder is as good."
        return Verdict("NO DIFFERENCE", reason, advice)
    if row["ci_low"] > 0:
        return Verdict("BETTER", reason, "Check it on your own text before you use it.")
    if row["ci_high"] < 0:
        return Verdict("WORSE", reason, f"Use the original encoder. {gentler}")
    advice = "More sentences or steps may show a difference. Until then, the original encoder is as good."
    return Verdict("NO DIFFERENCE", reason, advice)


def telling_row(
    comparison: pl.DataFrame | None, systems: Sequence[str], chose: Collection[str] = ()
) -> dict[str, Any] | None:
    """Return the row of `comparison` that decides: the mean of sets, else the first test set, else the first row.

    Args:
        comparison: The table `comparison`; None if nothing was compared.
        systems: Names of the encoders in the table; the last is compared with the first.
        chose: Sets that selected an encoder, as `<dataset>/<split>`; they are excluded.
    """
    if comparison is None:
        return None
    name = pl.col("dataset") + "/" + pl.col("split")
    rows = comparison.filter(~name.is_in(list(chose)), model=systems[-1], reference=systems[0], metric="spearman")
    first = (
        some.row(0, named=True) for some in (rows.filter(dataset=MEAN), rows.filter(split="test"), rows) if some.height
    )
    return next(first, None)


def judged(rows: Sequence[BeforeAfter], max_forgetting: float) -> Verdict:
    """Return the verdict on an adapted encoder.

    Args:
        rows: All evidence; the first row with the role `counts` decides.
        max_forgetting: Points that a general set may lose.
    """
    guards = [row for row in rows if row.role == "guard"]
    lost = min(guards, key=lambda row: row.difference, default=None)
    deciding = next((row for row in rows if row.role == "counts"), None)
    if lost is not None and forgets(lost.difference, max_forgetting / 100):
        reason = f"{_difference(lost)}: the loss exceeds the allowed {max_forgetting:g} points"
        if lost.ci_high >= 0:
            reason += ", although its interval includes 0"
        if deciding is not None and deciding.ci_low > 0:
            return Verdict("WORSE", reason, _traded(deciding, lost))
        return Verdict("WORSE", reason, _GENTLER)
    if deciding is None:
        return _not_proved([row for row in rows if row.metric == MRR])
    if deciding.ci_low > 0:
        return Verdict("BETTER", _difference(deciding), "Use the adapted encoder on text of this kind.")
    if deciding.ci_high < 0:
        return Verdict("WORSE", _difference(deciding), _GENTLER)
    return Verdict("NO DIFFERENCE", _difference(deciding), "You get the original encoder. More labels may show one.")


def _traded(gain: BeforeAfter, lost: BeforeAfter) -> str:
    """Return the advice if the score on labels improved and a general set lost: how to allow that loss."""
    allowed = ceil(-200 * lost.difference) / 2
    return (
        f"You get the original encoder, although the score on labels improved: {_difference(gain)}. If all your text "
        f"is of this kind, allow the loss: --set proof.max_forgetting={allowed:g}."
    )


def _not_proved(questions: Sequence[BeforeAfter]) -> Verdict:
    """Return the verdict without labels; the recommended number of labels follows from the widest interval."""
    widest = max((row.ci_high - row.ci_low) / 2 * row.n**0.5 for row in questions)
    rows = 100 * ceil(max((widest / _DETECTABLE) ** 2, _FEWEST_ROWS) / 100)
    reason = "there are no labels, and questions about the text itself do not predict a gain on labels"
    advice = (
        f"You get the original encoder. About {rows:,} test labels (--labels) show a difference of "
        f"{_DETECTABLE * 100:g} points."
    )
    return Verdict("NOT PROVED", reason, advice)


def _difference(row: BeforeAfter) -> str:
    figure = signed(row.difference, row.ci_low, row.ci_high)
    return f"{row.metric} × 100 {figure} on {row.evidence}, p {row.p_value:.3f}"
