"""Detect harmful training, and suggest a remedy that fits the settings.

- collapse: vectors lose rank or spread and no longer distinguish sentences, even if the loss falls
- decline: vectors keep their spread, but dev Spearman is below that of the starting encoder
- divergence: a loss or gradient is not finite; `train` raises `NonFiniteLossError`
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from models.training.config import CollapseConfig, TrainingConfig
    from models.training.dev_evaluation import Evaluation

HALF: Final = 0.5  # of the rank and spread at the start: below it, the finding is a collapse
REGARDLESS: Final = "training.collapse=null continues regardless"


def finding_of(history: Sequence[Evaluation], config: TrainingConfig, *, final: bool) -> str:
    """Return why a run should end now, if its latest evaluations are much worse than the first one.

    Args:
        history: All evaluations so far, the one before the first step included.
        config: Thresholds, and the settings that a remedy has to fit.
        final: Whether no evaluation will follow, so that one suspicious evaluation is enough.

    Returns:
        Collapse or decline with its evidence and a remedy; empty if the run may continue.
    """
    bounds = config.collapse
    start, later = history[0], history[1:]
    needed = 1 if final or bounds is None else bounds.patience
    if bounds is None or len(later) < needed:
        return ""
    reasons = [_suspicion(start, evaluation, bounds) for evaluation in later[-needed:]]
    return _finding(history, str(reasons[-1]), config) if all(reasons) else ""


def divergence_remedy(config: TrainingConfig) -> str:
    """Return the remedy for a loss or gradient that is not finite."""
    precision = "Set training.precision=fp32, or lower" if config.precision != "fp32" else "Lower"
    return f"{precision} training.lr (now {config.lr:g}) to {config.lr / 10:g}, or check these rows"


def _suspicion(start: Evaluation, now: Evaluation, bounds: CollapseConfig) -> str | None:
    # An encoder may start below a bound; it has collapsed only if training made it worse.
    if now.effective_rank < min(bounds.min_effective_rank, start.effective_rank):
        return f"effective rank is below {bounds.min_effective_rank}"
    if now.std < min(bounds.min_std, start.std):
        return f"the standard deviation of the unit vectors is below {bounds.min_std}"
    # NaN at the start (all dev pairs have the same cosine) leaves nothing to compare with.
    if start.dev_spearman is not None and now.dev_spearman is not None and not math.isnan(start.dev_spearman):
        drop = start.dev_spearman - now.dev_spearman
        if not drop <= bounds.max_dev_drop:  # written so that NaN counts as a drop
            return f"dev Spearman fell by {drop:.3f}, more than {bounds.max_dev_drop}"
    return None


def _finding(history: Sequence[Evaluation], reason: str, config: TrainingConfig) -> str:
    start, now = history[0], history[-1]
    shrunk = now.effective_rank < HALF * start.effective_rank or now.std < HALF * start.std
    # NaN, the same cosine for all dev pairs, is a collapse too.
    if shrunk or (now.dev_spearman is not None and math.isnan(now.dev_spearman)):
        what, remedy = "representations collapsed", _collapse_remedy(config)
    else:
        what, remedy = "the encoder got worse", _decline_remedy(config, max(history, key=_dev).step)
    return f"{what} by step {now.step}: {reason} ({_evidence(start, now)}). {remedy}"


def _dev(evaluation: Evaluation) -> float:
    score = evaluation.dev_spearman
    return -2.0 if score is None or math.isnan(score) else score


def _collapse_remedy(config: TrainingConfig) -> str:
    objective = config.objective
    if getattr(objective, "target_norm", None) == "none":
        step = (
            "Set training.objective.target_norm to 'standardize' or 'center', so that the target has no constant part"
        )
    elif getattr(objective, "contrastive_weight", None) == 0:
        step = "Set training.objective.contrastive_weight to 0.1, so that in-batch negatives keep vectors apart"
    else:
        step = f"Lower training.lr (now {config.lr:g}) to {config.lr / 10:g}"
    return f"{step}; {REGARDLESS}"


def _decline_remedy(config: TrainingConfig, best_step: int) -> str:
    if best_step:
        step = (
            f"The dev score was best at step {best_step}: set training.max_steps to it, or lower training.lr (now "
            f"{config.lr:g})"
        )
    else:
        step = (
            f"No step was better than the original encoder: lower training.lr (now {config.lr:g}) to {config.lr / 10:g}"
        )
    if getattr(config.objective, "contrastive_weight", None) == 0:
        step += ", or add in-batch negatives with training.objective.contrastive_weight=0.1"
    return f"{step}; {REGARDLESS}"


def _evidence(start: Evaluation, now: Evaluation) -> str:
    names = ("dev_spearman", "effective_rank", "std", "uniformity", "alignment")
    pairs = {name: (getattr(start, name), getattr(now, name)) for name in names}
    return ", ".join(f"{name} {a:.4g} → {b:.4g}" for name, (a, b) in pairs.items() if None not in (a, b))
