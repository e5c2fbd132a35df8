"""The learning rate of each step: linear warm-up, then linear decay or none."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from models.training.config import TrainingConfig


def learning_rate(step: int, total: int, config: TrainingConfig) -> float:
    """The learning rate of optimizer step `step`, counted from 1, of `total`.

    As the released code: warm-up over ⌈warmup · total⌉ steps, where the first step has rate 0, and decay that would
    reach 0 one step after the last.
    """
    done = step - 1
    rising = math.ceil(config.warmup * total)
    if done < rising:
        return config.lr * done / rising
    if config.decay == "constant":
        return config.lr
    return config.lr * (total - done) / max(1, total - rising)
