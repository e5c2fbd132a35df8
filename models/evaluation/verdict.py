"""The rules of every verdict on a trained encoder: one word, the difference, its interval and p, what to do next."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, isnan
from typing import TYPE_CHECKING, Any, Final, Literal

import polars as pl

from models.evaluation.own_text import ENOUGH, TOO_FEW
from models.evaluation.proof import BeforeAfter
from models.evaluation.signature import PLACE, PRINTED, signed
from models.evaluation.significance.paired import forgets
from models.evaluation.sweep import MEAN

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

Word = Literal["BETTER", "NO DIFFERENCE", "WORSE", "NOT PROVED", "NOT TESTED", "STOPPED"]
STOPPED: Final = "STOPPED"
_GENTLER: Final = (
    "The start is kept. Train more gently: lower training.lr, fewer training.max_steps (of label_training where labels "
    "teach), a larger training.objective.anchor_weight (raw_lr and raw_anchor for a bare transformer), or more text."
)
_TOLD_APART: Final = 0.02  # a difference that labels should show
_FEWEST_ROWS: Final = 400  # with fewer, such a difference is eight rows
_UNTESTED: Final = "no set of scored pairs was evaluated but the one that chose the encoder"


@dataclass(frozen=True)
class Verdict:
    """What a run says of itself.

    Attributes:
        word: the finding.
        reason: by how much, on what, with which interval and p.
        advice: what to do next.
    """

    word: Word
    reason: str
    advice: str

    @property
    def found(self) -> str:
        """The sentence that follows the word, as pages print it."""
        return f"{'than the start: ' if self.word in ('BETTER', 'WORSE') else ''}{self.reason}. {self.advice}"


def verdict_of(
    comparison: pl.DataFrame | None,
    systems: tuple[str, ...],
    dev: str | None,
    gentler: str,
    *,
    kept_start: bool,
    finding: str = "",
) -> Verdict:
    """The verdict on the last of several encoders, held against the first.

    Args:
        comparison: the table `comparison`; None where nothing was compared.
        systems: what the table calls the encoder at the start, after each training.
        dev: the set that chose the encoder, as `<data set>/<split>`; figures on it prove nothing.
        gentler: what to change where training did harm.
        kept_start: whether no step of any training was kept.
        finding: why a training was stopped as harmful; empty if none was.
    """
    if finding:
        kept = "the start itself" if kept_start else "the best evaluation before that"
        return Verdict(STOPPED, finding, f"The figures are of {kept}.")
    if kept_start:
        reason = f"no step was better on {dev}, and the start itself was kept"
        return Verdict("NO DIFFERENCE", reason, f"Keep the start. {gentler}")
    row = telling_row(comparison, systems, {(dev or "").removeprefix("embedded:")})
    if row is None:
        return Verdict("NOT TESTED", _UNTESTED, "Name test sets in evaluation.sets, such as sts or stsb/test.")
    reason = (
        f"Spearman × 100 {signed(row['value'], row['ci_low'], row['ci_high'])} on {row['dataset']} {row['split']}, "
        f"p {row['p_value']:.3f}"
    )
    if row["ci_low"] > 0:
        return Verdict("BETTER", reason, "Check it on your own text before you use it.")
    if row["ci_high"] < 0:
        return Verdict("WORSE", reason, f"Keep the start. {gentler}")
    return Verdict("NO DIFFERENCE", reason, "More sentences or steps may show one; until then the start does as well.")


def telling_row(
    comparison: pl.DataFrame | None, systems: Sequence[str], chose: Collection[str] = ()
) -> dict[str, Any] | None:
    """The difference that a verdict stands on: the mean of the test sets where there are several, else the one, if any.

    Args:
        comparison: the table `comparison`; None where nothing was compared.
        systems: what the table calls the encoders; the last is compared with the first.
        chose: sets, as `<data set>/<split>`, that chose an encoder.
    """
    if comparison is None:
        return None
    named = pl.col("dataset") + "/" + pl.col("split")
    rows = comparison.filter(~named.is_in(list(chose)), model=systems[-1], reference=systems[0], metric="spearman")
    first = (
        some.row(0, named=True) for some in (rows.filter(dataset=MEAN), rows.filter(split="test"), rows) if some.height
    )
    return next(first, None)


def general_evidence(
    scores: Sequence[pl.DataFrame], comparisons: Sequence[pl.DataFrame], headlines: Mapping[str, Sequence[str]]
) -> list[BeforeAfter]:
    """The differences on general sets as evidence, a figure a set.

    One with an interval may forbid an encoder. Without one nobody knows what chance does, and of many such sets one
    often falls by half a point between encoders that are equally good: they are shown, as the mean is.

    Args:
        scores: tables `scores`, those of the start before those of the adapted encoder.
        comparisons: tables `comparison` of the two; the figures of a set that none compares have no interval.
        headlines: data set → the metrics that stand for it, the first that it has before others.
    """
    if not scores:
        return []
    ranks = [(name, metric, rank) for name, metrics in headlines.items() for rank, metric in enumerate(metrics)]
    ranked = pl.DataFrame(ranks, schema=["dataset", "metric", "rank"], orient="row")
    values = pl.concat(scores).filter(PRINTED).join(ranked, on=["dataset", "metric"], maintain_order="left")
    standing = values.filter(pl.col("rank") == pl.col("rank").min().over("dataset", "split"))
    start, adapted = (rows for _, rows in standing.group_by("model", maintain_order=True))
    both = start.join(adapted.select(*PLACE, after="value"), on=PLACE, maintain_order="left")
    compared = {_place(row): row for table in comparisons for row in table.rows(named=True)}
    rows = [_general(row, compared.get(_place(row), {})) for row in both.rows(named=True)]
    means = [row for row in compared.values() if row["dataset"] == MEAN]
    return [*rows, *(_general(row | {"value": None, "after": None}, row) for row in means)]


def _place(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(row[name] for name in PLACE)


def _general(row: Mapping[str, Any], compared: Mapping[str, Any]) -> BeforeAfter:
    """A figure of a set before and after, or of their mean, of which only the difference is known."""
    nothing = float("nan")
    before, after = (nothing if row[name] is None else row[name] for name in ("value", "after"))
    low, high, p_value = (compared.get(name, nothing) for name in ("ci_low", "ci_high", "p_value"))
    protocol = "" if row["protocol"] == "all" else f" ({row['protocol']})"
    return BeforeAfter(
        f"{row['dataset']} {row['split']}{protocol}".strip(),
        "Spearman" if row["metric"] == "spearman" else row["metric"],
        "shown" if row["dataset"] == MEAN or isnan(low) else "guard",
        before,
        after,
        compared.get("value", after - before),
        low,
        high,
        p_value,
        row["n"],
        0,
    )


def judged(rows: Sequence[BeforeAfter], max_forgetting: float) -> Verdict:
    """The verdict on an adapted encoder.

    Args:
        rows: all evidence; the first that counts decides, it is the mean where several do.
        max_forgetting: points that a general set may lose.
    """
    guards = [row for row in rows if row.role == "guard"]
    lost = min(guards, key=lambda row: row.difference, default=None)
    deciding = next((row for row in rows if row.role == "counts"), None)
    if lost is not None and forgets(lost.difference, max_forgetting / 100):
        reason = f"{_told(lost)}: the figure fell by more than the {max_forgetting:g} points that it may fall"
        if lost.ci_high >= 0:
            reason += ", though chance alone may do that too"
        return Verdict("WORSE", reason, _GENTLER)
    if deciding is None:
        return _not_proved([row for row in rows if row.metric == "MRR"])
    if deciding.ci_low > 0:
        return Verdict("BETTER", _told(deciding), "Use the adapted encoder on text of this kind.")
    if deciding.ci_high < 0:
        return Verdict("WORSE", _told(deciding), _GENTLER)
    return Verdict("NO DIFFERENCE", _told(deciding), "The start is kept. More labelled rows may show one.")


def _not_proved(asked: Sequence[BeforeAfter]) -> Verdict:
    """What is said without labels.

    Args:
        asked: Questions about the text. The widest of their intervals says how many labelled rows are enough.
    """
    if not asked:
        return Verdict("NOT PROVED", TOO_FEW, f"The start is kept. Give --labels, or more text: {ENOUGH}.")
    widest = max((row.ci_high - row.ci_low) / 2 * row.n**0.5 for row in asked)
    rows = 100 * ceil(max((widest / _TOLD_APART) ** 2, _FEWEST_ROWS) / 100)
    reason = "there are no labels, and no question about the text itself was seen to tell whether labels would gain"
    advice = (
        f"The start is kept. About {rows:,} labelled rows that judge (--labels) show a difference of "
        f"{_TOLD_APART * 100:g} points."
    )
    return Verdict("NOT PROVED", reason, advice)


def _told(row: BeforeAfter) -> str:
    figure = signed(row.difference, row.ci_low, row.ci_high)
    return f"{row.metric} × 100 {figure} on {row.evidence}, p {row.p_value:.3f}"
