"""What counts as forgetting: one rule for every verdict that a general set may forbid."""

from __future__ import annotations


def forgets(difference: float, allowed: float) -> bool:
    """Whether an encoder lost more on a general set than it may.

    The figure itself decides, and not whether the loss is sure: an interval that holds 0 shows no loss, but does not
    show that there is none, and what is handed out must not have lost more than it may.

    Args:
        difference: Of the figures, after less before, in [-2, 2].
        allowed: What may be lost, ≥ 0.
    """
    return difference < -allowed
