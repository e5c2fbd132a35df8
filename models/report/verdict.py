"""Did training do the encoder good? One word, by how much, how sure, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import polars as pl

from models.evaluation.study import MEAN
from models.report.differences import signed

if TYPE_CHECKING:
    from models.training.config import TrainingConfig

Word = Literal["BETTER", "NO DIFFERENCE", "WORSE", "NOT TESTED"]
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
    def sentence(self) -> str:
        """All of it, as pages print it."""
        return f"**{self.word}**{' than the start' if self.than else ''}: {self.reason}. {self.advice}"

    @property
    def than(self) -> bool:
        """Whether the word compares, so that what it compares with must follow."""
        return self.word in ("BETTER", "WORSE")


def verdict_of(
    comparison: pl.DataFrame | None,
    systems: tuple[str, ...],
    dev: str | None,
    training: TrainingConfig,
    *,
    kept_start: bool,
) -> Verdict:
    """The verdict on the last of several encoders, held against the first.

    Args:
        comparison: the table `comparison`; None where nothing was compared.
        systems: what the table calls the encoder at the start, after each training.
        dev: the set that chose the encoder, as `<data set>/<split>`; figures on it prove nothing.
        training: settings of the last training.
        kept_start: whether no step of any training was kept.
    """
    if kept_start:
        reason = f"no step was better on {dev}, and the start itself was kept"
        return Verdict("NO DIFFERENCE", reason, f"Keep the start. {_gentler(training)}")
    row = telling_row(comparison, systems, dev)
    if row is None:
        return Verdict("NOT TESTED", _UNTESTED, "Name test sets in evaluation.sets, such as sts or stsb/test.")
    reason = (
        f"Spearman × 100 {signed(row['value'], row['ci_low'], row['ci_high'])} on {row['dataset']} {row['split']}, "
        f"p {row['p_value']:.3f}"
    )
    if row["ci_low"] > 0:
        return Verdict("BETTER", reason, "Check it on your own text before you use it.")
    if row["ci_high"] < 0:
        return Verdict("WORSE", reason, f"Keep the start. {_gentler(training)}")
    return Verdict("NO DIFFERENCE", reason, "More sentences or steps may show one; until then the start does as well.")


def telling_row(comparison: pl.DataFrame | None, systems: tuple[str, ...], dev: str | None) -> dict[str, Any] | None:
    """The difference that a verdict stands on: the mean of the test sets where there are several, else the one, if any.

    Args:
        comparison: as `verdict_of` takes it, and so the others.
        systems: what the table calls the encoders.
        dev: the set that chose the encoder.
    """
    if comparison is None:
        return None
    rows = comparison.filter(model=systems[-1], reference=systems[0], metric="spearman").filter(
        pl.col("dataset") + "/" + pl.col("split") != (dev or "").removeprefix("embedded:")
    )
    first = (
        some.row(0, named=True) for some in (rows.filter(dataset=MEAN), rows.filter(split="test"), rows) if some.height
    )
    return next(first, None)


def _gentler(training: TrainingConfig) -> str:
    """Where to turn, from the settings at hand."""
    advice = f"Lower training.lr (now {training.lr:g})"
    if training.max_steps is None:
        advice += ", bound training.max_steps"
    if getattr(training.objective, "contrastive_weight", None) == 0:
        advice += ", or give in-batch negatives (training.objective.contrastive_weight=0.1)"
    return f"{advice}."
