"""Verdicts on a trained encoder: one word, the difference with its interval and p-value, and advice."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, sqrt
from typing import TYPE_CHECKING, Any, Final, Literal

import polars as pl

from bsl.models.evaluation.proof import MRR, QUESTIONS, AdaptationComparison
from bsl.models.evaluation.signature import p_text, with_sign
from bsl.models.evaluation.significance.paired import forgets, side_of
from bsl.models.evaluation.sweep import MEAN
from bsl.models.evaluation.uses import USES

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
_FEWEST_ROWS: Final = 400  # minimum of test labels to recommend: such a difference is then eight rows
TO_LABEL_ROWS: Final = 2 * _FEWEST_ROWS
"""Rows to label at least: half of them are for the test."""
_RECORD: Final = (
    "a quarter of such a training was better on labels in 24 of 60 cases, the same in 32 and worse in 4 "
    "(BENCHMARKS.md, When BETTER is said)"
)
_GENERAL: Final = "general text"
_UNTESTED: Final = "no set of scored pairs was evaluated, except the dev set that selected the encoder"


@dataclass(frozen=True)
class Verdict:
    """Verdict of a run on its encoder.

    Attributes:
        word: One of `Word`.
        reason: The difference, its set, interval and p-value.
        advice: Recommended next step.
        use: The use that the word holds for, such as `classifying`; empty for encoders in general.
    """

    word: Word
    reason: str
    advice: str
    use: str = ""

    @property
    def headline(self) -> str:
        """The word and the use that it holds for."""
        return f"{self.word} for {self.use}" if self.use else self.word

    @property
    def finding(self) -> str:
        """The complete verdict, as commands print it."""
        return f"{self.headline}: {self.reason}. {self.advice}"

    @property
    def sentence(self) -> str:
        """The verdict without its word, which pages print before it."""
        use = f"for {self.use}" if self.use else ""
        other = "than the original encoder" if self.word in ("BETTER", "WORSE") else ""
        start = " ".join(filter(None, [use, other]))
        return f"{f'{start}: ' if start else ''}{self.reason}. {self.advice}"


def verdict_of(
    comparison: pl.DataFrame | None,
    systems: tuple[str, ...],
    dev: str | None,
    gentler: str,
    *,
    kept_start: bool,
    finding: str = "",
    smallest: float = 0.0,
) -> Verdict:
    """Return the verdict on a trained encoder, compared with the original.

    Args:
        comparison: The table `comparison`; None if nothing was compared.
        systems: Names of the encoders in the table: the original, then the encoder after each training.
        dev: Dev set that selected the encoder, as `<dataset>/<split>`; scores on it are not used.
        gentler: Advice if training did harm.
        kept_start: Whether dev selection kept the original encoder.
        finding: Reason why training was stopped as harmful; empty if it was not.
        smallest: Smallest p that the draws of the table can show (`sweep.smallest_p`); 0 if unknown.
    """
    if finding:
        evaluated = "the original encoder" if kept_start else "the best checkpoint before that"
        return Verdict(STOPPED, finding, f"The figures are of {evaluated}.")
    if kept_start:
        reason = f"no training step improved the score on {dev}, so you get the original encoder"
        return Verdict("NO DIFFERENCE", reason, f"Use the original encoder. {gentler}")
    row = deciding_comparison(comparison, systems, {(dev or "").removeprefix("embedded:")})
    if row is None:
        return Verdict("NOT TESTED", _UNTESTED, "Name test sets in evaluation.sets, such as sts or stsb/test.")
    reason = (
        f"Spearman × 100 {with_sign(row['value'], row['ci_low'], row['ci_high'])} on {row['dataset']} {row['split']}, "
        f"p {p_text(row['p_value'], smallest)}"
    )
    side = side_of(row["ci_low"], row["ci_high"], row["p_value"])
    if side != "no" and abs(row["value"]) < RELEVANT / 100:
        advice = f"The difference is significant but below {RELEVANT:g} points: the original encoder is as good."
        return Verdict("NO DIFFERENCE", reason, advice)
    if side == "above":
        return Verdict("BETTER", reason, "Check it on your own text before you use it.")
    if side == "below":
        return Verdict("WORSE", reason, f"Use the original encoder. {gentler}")
    advice = "More sentences or steps may show a difference. Until then, the original encoder is as good."
    return Verdict("NO DIFFERENCE", reason, advice)


def deciding_comparison(
    comparison: pl.DataFrame | None, systems: Sequence[str], chose: Collection[str] = ()
) -> dict[str, Any] | None:
    """Return the row of `comparison` that decides: the mean of sets, else the first test set, else the first row.

    The mean does not decide if a set in it selected an encoder.

    Args:
        comparison: The table `comparison`; None if nothing was compared.
        systems: Names of the encoders in the table; the last is compared with the first.
        chose: Sets that selected an encoder, as `<dataset>/<split>`; they are excluded.
    """
    if comparison is None:
        return None
    compared = comparison.filter(model=systems[-1], reference=systems[0], metric="spearman")
    has_selected = (pl.col("dataset") + "/" + pl.col("split")).is_in(list(chose))
    rows, tests = compared.filter(~has_selected), compared.filter(has_selected, split="test")
    if tests.height:
        rows = rows.filter(pl.col("dataset") != MEAN)
    first = (
        some.row(0, named=True) for some in (rows.filter(dataset=MEAN), rows.filter(split="test"), rows) if some.height
    )
    return next(first, None)


def adaptation_verdict(
    rows: Sequence[AdaptationComparison],
    max_forgetting: float,
    smaller_share: str,
    most_frequent: float = 0,
    texts: int | None = None,
) -> Verdict:
    """Return the verdict on an adapted encoder for the use that decides.

    Losses of other uses are in its reason. Its advice says if a classifier needs no adaptation.

    Args:
        rows: All comparisons; the first with the role `decides` decides.
        max_forgetting: Points that a general set may lose.
        smaller_share: Setting that adopts less of the training, as `--set` takes it.
        most_frequent: Share of the most frequent class among the test rows; 0 without classes.
        texts: Number of chosen texts to label, at most `TO_LABEL_ROWS`; None with labels.
    """
    verdict = _decided(rows, max_forgetting, smaller_share, texts or TO_LABEL_ROWS)
    return replace(verdict, advice=f"{verdict.advice}{_frozen(rows, most_frequent)}")


def exceeds_most_frequent(accuracy: float, rows: int, most_frequent: float) -> bool:
    """Return whether an accuracy on test rows is two standard errors above the share of the most frequent class."""
    return accuracy - 2 * sqrt(accuracy * (1 - accuracy) / rows) > most_frequent


def _decided(rows: Sequence[AdaptationComparison], max_forgetting: float, smaller_share: str, texts: int) -> Verdict:
    lost = min((row for row in rows if row.role == "vetoes"), key=lambda row: row.difference, default=None)
    deciding = next((row for row in rows if row.role == "decides"), None)
    others = [row for row in rows if row.use and row is not deciding]
    if lost is not None and forgets(lost.difference, max_forgetting / 100):
        return _with_losses(_vetoed(lost, deciding, max_forgetting), [row for row in rows if row.use])
    if deciding is None:
        asked = [row for row in rows if row.metric == MRR and row.evidence != QUESTIONS]
        return _with_losses(_not_proved(asked, texts), others)
    if deciding.use == "similarity" and falls(deciding.before, deciding.n):
        return _reversed(deciding)
    use, reason = _title(deciding), _before_after(deciding)
    if deciding.answer == "better":
        losing = _title(*(row for row in others if row.answer == "worse"))
        return _with_losses(Verdict("BETTER", reason, _recommended(use, losing, smaller_share), use), others)
    if deciding.answer == "worse":
        return _with_losses(Verdict("WORSE", reason, f"{_GENTLER}{_gains(others)}", use), others)
    advice = f"You get the original encoder{_without_difference(deciding)}{_gains(others)}"
    return _with_losses(Verdict("NO DIFFERENCE", reason, advice, use), others)


def _without_difference(deciding: AdaptationComparison) -> str:
    """Return the end of a sentence: what may show a difference, or that the original leaves none to show."""
    if deciding.before == 1:
        return ", which has no fault on the test rows."
    return f". More {'text' if deciding.metric == MRR else 'labels'} may show a difference."


def _with_losses(verdict: Verdict, others: Sequence[AdaptationComparison]) -> Verdict:
    """Add the significant losses of uses that do not decide, so that no verdict stands without them."""
    losses = [f"worse for {_title(row)}: {_before_after(row)}" for row in others if row.answer == "worse"]
    if not losses:
        return verdict
    link = "but" if verdict.word in ("BETTER", "NO DIFFERENCE") else "and"
    subject = "the adapted encoder is " if verdict.word == "NOT PROVED" else ""
    return replace(verdict, reason=f"{verdict.reason}, {link} {subject}{' and '.join(losses)}")


def _frozen(rows: Sequence[AdaptationComparison], most_frequent: float) -> str:
    """Return a sentence if a classifier of the original encoder's vectors is as good; empty if not, or not tested.

    It is also empty for a classifier that has learned nothing: then the labels do not tell what it needs.
    """
    row = next((row for row in rows if row.use == "classify" and row.answer == "same"), None)
    if row is None or not exceeds_most_frequent(row.before, row.n, most_frequent):
        return ""
    return (
        f" A classifier needs no adaptation: on {row.n:,} test rows, one on the original encoder's vectors is as good "
        f"within noise ({row.metric} × 100 {100 * row.before:.1f}, on the adapted encoder's {100 * row.after:.1f})."
    )


def _recommended(use: str, losing: str, smaller_share: str) -> str:
    """Return the advice for an encoder that is better for `use` and worse for `losing`, if that is not empty."""
    if not losing:
        return f"Use the adapted encoder for {use} on text of this kind."
    return (
        f"Use the adapted encoder for {use} on text of this kind, and the original encoder for {losing}. A smaller "
        f"share of the training loses less (--set {smaller_share}); --for lets another use decide."
    )


def no_labels(*, accept: bool) -> str:
    """Return the sentence before a training without labels: the best possible verdict, and how to get another one."""
    result = "you get the adapted encoder (--accept)" if accept else "you get the original encoder"
    return (
        f"without labels the best verdict is NOT PROVED, and {result}. To prove a gain, label rows, about "
        f"{TO_LABEL_ROWS:,} if there are as many (half are for the test): the run chooses them and writes to-label.csv"
    )


def _gains(others: Sequence[AdaptationComparison]) -> str:
    """Return a sentence on the uses that gained although they do not decide; empty if none did."""
    gained = [row for row in others if row.answer == "better"]
    if not gained:
        return ""
    found = "; ".join(f"{_title(row)} (--for {row.use}), {_before_after(row)}" for row in gained)
    return f" The adapted encoder is better for {found}."


def _title(*rows: AdaptationComparison) -> str:
    return " and ".join(USES[row.use].title for row in rows if row.use)


def _before_after(row: AdaptationComparison) -> str:
    figures = f"{row.metric} × 100 {100 * row.before:.1f} → {100 * row.after:.1f}"
    return f"{figures}, {with_sign(row.difference, row.ci_low, row.ci_high)}"


def _vetoed(lost: AdaptationComparison, deciding: AdaptationComparison | None, max_forgetting: float) -> Verdict:
    """Return the verdict if a general set lost too much."""
    reason = f"{_difference(lost)}: the loss exceeds the allowed {max_forgetting:g} points"
    if lost.ci_high >= 0:
        reason += ", although its interval includes 0"
    if deciding is not None and deciding.answer == "better":
        return Verdict("WORSE", reason, _traded(deciding, lost), _GENERAL)
    return Verdict("WORSE", reason, _GENTLER, _GENERAL)


def _traded(gain: AdaptationComparison, lost: AdaptationComparison) -> str:
    """Return the advice if the deciding use gained and a general set lost: how to allow that loss."""
    allowed = ceil(-200 * lost.difference) / 2
    return (
        f"You get the original encoder, although the adapted encoder is better for {_title(gain)}: "
        f"{_before_after(gain)}. If all your text is of this kind, allow the loss: --set "
        f"proof.max_forgetting={allowed:g}."
    )


def falls(spearman: float, pairs: int) -> bool:
    """Return whether scores fall as cosines rise: the correlation is two standard errors below 0."""
    return spearman + 2 / sqrt(pairs) < 0


REVERSED: Final = (
    "Are they distances, or numbers of classes such as 0 for entailment? Write scores that rise with similarity"
)
"""What to do about such scores, without period."""


def _reversed(row: AdaptationComparison) -> Verdict:
    reason = f"the scores fall as similarity rises ({row.metric} × 100 {100 * row.before:.1f} of the original encoder)"
    return Verdict("NOT PROVED", reason, f"{REVERSED}, and adapt again. You get the original encoder.", _title(row))


def _not_proved(questions: Sequence[AdaptationComparison], texts: int) -> Verdict:
    """Return the verdict without labels; the recommended number of labels follows from the widest interval."""
    widest = max((row.ci_high - row.ci_low) / 2 * row.n**0.5 for row in questions)
    rows = 100 * ceil(max((widest / _DETECTABLE) ** 2, _FEWEST_ROWS) / 100)
    reason = "there are no labels, and questions about the text itself do not predict a gain on labels"
    to_label, difference = f"about {2 * rows:,} rows", _DETECTABLE
    if texts < TO_LABEL_ROWS:  # there are no others
        widest = max(widest, _DETECTABLE * _FEWEST_ROWS**0.5)
        to_label, difference = f"all {texts:,} texts", widest / (texts / 2) ** 0.5
    advice = (
        f"To prove a gain, label {to_label} (half are for the test): they show a difference of "
        f"{100 * difference:.2g} points. You get the original encoder, or with --accept the adapted one without proof: "
        f"{_RECORD}."
    )
    return Verdict("NOT PROVED", reason, advice)


def _difference(row: AdaptationComparison) -> str:
    figure = with_sign(row.difference, row.ci_low, row.ci_high)
    return f"{row.metric} × 100 {figure} on {row.evidence}"
