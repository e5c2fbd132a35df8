"""Which optimizers a pre-training run has, and the learning rate that they share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from models.pretraining.config import LearningConfig


def build_optimizers(model: nn.Module, config: LearningConfig) -> list[torch.optim.Optimizer]:
    """One optimizer per kind of parameter, in a fixed order.

    Args:
        model: The network; its input embedding (and what is tied to it) always goes to AdamW.
        config: Names the optimizer of the hidden matrices.

    Returns:
        AdamW alone, or AdamW and Muon.
    """
    embeddings = {id(p) for m in model.modules() if isinstance(m, nn.Embedding) for p in m.parameters()}
    trainable = [p for p in model.parameters() if p.requires_grad]
    matrices = [p for p in trainable if p.ndim == 2 and id(p) not in embeddings]
    others = [p for p in trainable if p.ndim != 2 or id(p) in embeddings]
    betas = (0.9, config.beta2)
    groups = [{"params": others, "weight_decay": 0.0}]
    if config.optimizer == "adamw":
        groups.append({"params": matrices, "weight_decay": config.weight_decay})
        return [torch.optim.AdamW(groups, lr=config.peak_lr, betas=betas, eps=1e-8, fused=True)]
    return [
        torch.optim.AdamW(groups, lr=config.peak_lr, betas=betas, eps=1e-8, fused=True),
        torch.optim.Muon(matrices, lr=config.peak_lr, weight_decay=config.weight_decay, adjust_lr_fn="match_rms_adamw"),
    ]


def learning_rate(config: LearningConfig, step: int, fraction: float) -> float:
    """Linear warm-up by steps, then linear decay to zero by the share of the budget that is spent.

    Args:
        config: Peak rate and warm-up.
        step: Steps already taken.
        fraction: Share of the budget spent, in [0, 1].

    Returns:
        The rate of the next step.
    """
    warmup = min(1.0, (step + 1) / config.warmup_steps) if config.warmup_steps else 1.0
    return config.peak_lr * warmup * max(0.0, 1.0 - fraction)
