"""The optimizers of one run and their common learning rate."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

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


def set_learning_rate(optimizers: Sequence[torch.optim.Optimizer], rate: float) -> None:
    """Give every group of every optimizer the same rate."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = rate


def optimizer_tensors(optimizers: Sequence[torch.optim.Optimizer]) -> dict[str, Tensor]:
    """All optimizer state as named tensors: `<optimizer>.<parameter>.<quantity>`."""
    tensors: dict[str, Tensor] = {}
    for number, optimizer in enumerate(optimizers):
        for index, state in optimizer.state_dict()["state"].items():
            for name, value in state.items():
                tensors[f"{number}.{index}.{name}"] = torch.as_tensor(value).contiguous()
    return tensors


def restore_optimizers(optimizers: Sequence[torch.optim.Optimizer], tensors: dict[str, Tensor]) -> None:
    """Put back what `optimizer_tensors` gave; groups and rates stay those of the present config."""
    for number, optimizer in enumerate(optimizers):
        state: dict[int, dict[str, Tensor]] = {}
        for key, value in tensors.items():
            owner, index, name = key.split(".", 2)
            if int(owner) == number:
                state.setdefault(int(index), {})[name] = value
        optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
