"""When a run counts as collapsed: its vectors no longer tell sentences apart, whatever the loss says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from models.errors import CollapseError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from models.training.config import CollapseConfig
    from models.training.evaluator import Evaluation

REMEDY = (
    "set training.objective.target_norm to 'standardize' or 'center' (of objectives with a target), or lower the "
    "learning rate; training.collapse=null trains on regardless"
)


def check_collapse(history: Sequence[Evaluation], config: CollapseConfig, *, final: bool) -> None:
    """Stop a run whose latest evaluations look collapsed beside the first one.

    Args:
        history: All evaluations so far, the one before the first step included.
        config: Thresholds.
        final: Whether no evaluation will follow, so that one suspicious evaluation is enough.

    Raises:
        CollapseError: With the quantities at the start and now.
    """
    start, later = history[0], history[1:]
    needed = 1 if final else config.patience
    if len(later) < needed:
        return
    reasons = [_suspicion(start, evaluation, config) for evaluation in later[-needed:]]
    if all(reasons):
        raise CollapseError(later[-1].step, str(reasons[-1]), _evidence(start, later[-1]), REMEDY)


def _suspicion(start: Evaluation, now: Evaluation, config: CollapseConfig) -> str | None:
    if start.dev_spearman is not None and now.dev_spearman is not None:
        drop = start.dev_spearman - now.dev_spearman
        if not drop <= config.max_dev_drop:  # written so that NaN counts as a drop
            return f"dev Spearman fell by {drop:.3f}, more than {config.max_dev_drop}"
    # An encoder may start below a bound; it has collapsed only if training took it there.
    if now.effective_rank < min(config.min_effective_rank, start.effective_rank):
        return f"effective rank is below {config.min_effective_rank}"
    if now.std < min(config.min_std, start.std):
        return f"the spread of the unit vectors is below {config.min_std}"
    return None


def _evidence(start: Evaluation, now: Evaluation) -> dict[str, tuple[float, float]]:
    names = ("dev_spearman", "effective_rank", "std", "uniformity", "alignment")
    pairs = {name: (getattr(start, name), getattr(now, name)) for name in names}
    return {name: values for name, values in pairs.items() if None not in values}
