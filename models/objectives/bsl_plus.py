"""BSL+: deviations from the paper, all off by default: statistics of the target, and three further terms of the loss.

    L + w₁ · InfoNCE(h₁, h₂) + w₂ · InfoNCE(z, t with a queue) + w₃ · ranking(h against t)

Shapes: B pairs, D width, Q places of the queue, N = B − 1 other sentences.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import torch
from torch import nn
from torch.nn import functional

from models.objectives.info_nce import info_nce, off_diagonal
from models.objectives.objective import full_precision

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from models.objectives.config import BSLConfig, TwoBranchConfig
    from models.objectives.info_nce import VectorQueue

FLOOR = 1e-6  # smallest divisor, so that a constant dimension stays finite
Views = tuple[torch.Tensor, torch.Tensor]


class TargetNorm(nn.Module):
    """Remove a running mean (and spread) from the target's vectors.

    Mean-pooled vectors of a raw masked language model share one dominant direction. With it in the target, a constant
    prediction reaches cosine 0.97 and the encoder forgets the differences between sentences. DINO (Caron et al., 2021)
    centres for the same reason.

    Example:
        >>> norm = TargetNorm(2, BSLConfig(target_norm="center"))
        >>> norm(torch.tensor([[1.0, 4.0], [3.0, 4.0]]))
        tensor([[-1.,  0.],
                [ 1.,  0.]])
    """

    mean: torch.Tensor
    variance: torch.Tensor
    batches: torch.Tensor

    def __init__(self, width: int, config: TwoBranchConfig) -> None:
        super().__init__()
        self.kind = config.target_norm
        self.momentum = config.target_norm_momentum
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("variance", torch.ones(width))
        self.register_buffer("batches", torch.zeros((), dtype=torch.int64))

    @torch.no_grad()
    def forward(self, t_BD: torch.Tensor) -> torch.Tensor:
        """Update the statistics with this batch, then remove them: (B, D)."""
        if self.kind == "none":
            return t_BD
        if self.training:
            self._update(t_BD)
        centred_BD = t_BD - self.mean
        return centred_BD if self.kind == "center" else centred_BD / self.variance.sqrt().clamp_min(FLOOR)

    def _update(self, t_BD: torch.Tensor) -> None:
        # The first batch replaces the arbitrary initial values; later ones are averaged in.
        share = torch.where(self.batches == 0, 1.0, 1.0 - self.momentum)
        self.mean.lerp_(t_BD.mean(dim=0), share)
        self.variance.lerp_(t_BD.var(dim=0, unbiased=False), share)
        self.batches += 1


def further_terms(config: BSLConfig, queue: VectorQueue, h: Views, z: Views, t: Views) -> Iterator[torch.Tensor]:
    """Yield each term with a weight above 0, multiplied by its weight; each is a scalar.

    Args:
        config: Weights and temperatures.
        queue: Target vectors of earlier batches; in training, this batch's are added.
        h: Online vectors of view 1 and view 2, each (B, D).
        z: Predictions from both views, each (B, D).
        t: Target vectors of both views, each (B, D); no gradient flows into them.
    """
    if config.contrastive_weight > 0:
        yield config.contrastive_weight * info_nce(*h, config.temperature, symmetric=True)
    if config.target_contrastive_weight > 0:
        yield config.target_contrastive_weight * momentum_contrast(z, t, queue, config.temperature)
    if config.ranking_weight > 0:
        yield config.ranking_weight * ranking_loss(h, t, config)


def momentum_contrast(z: Views, t: Views, queue: VectorQueue, temperature: float) -> torch.Tensor:
    """Return InfoNCE of predictions against the other view's targets (MoCo v3, Chen et al., 2021), with MoCo's queue.

    Example:
        >>> z = t = (torch.eye(2), torch.eye(2))
        >>> momentum_contrast(z, t, VectorQueue(), temperature=1.0)  # log(1 + 1/e)
        tensor(0.3133)
    """
    queue_QD = queue.vectors if len(queue.vectors) else None
    first = info_nce(z[0], t[1].detach(), temperature, queue_QD)
    second = info_nce(z[1], t[0].detach(), temperature, queue_QD)
    if queue.training:
        queue.push(torch.cat(t))
    return 0.5 * (first + second)


def ranking_loss(h: Views, t: Views, config: BSLConfig) -> torch.Tensor:
    """Return the ranking loss between the online encoder's and the target's lists, ≥ 0 (RankCSE, Liu et al., 2023).

    A list contains one sentence's cosines with the opposite views of all other sentences in the batch. Its own opposite
    view is excluded, because it would lead every list. Deviation: RankCSE uses the order of another trained encoder.

    Args:
        h: Online vectors of view 1 and view 2, each (B, D).
        t: Target vectors, each (B, D); no gradient flows into them.
        config: Which loss, and its temperatures.
    """
    loss = _RANKINGS[config.ranking]
    temperatures = config.ranking_temperature, config.ranking_target_temperature
    first = loss(lists(*h), lists(*t).detach(), *temperatures)
    second = loss(lists(*h[::-1]), lists(*t[::-1]).detach(), *temperatures)
    return 0.5 * (first + second)


@full_precision
def lists(one_BD: torch.Tensor, other_BD: torch.Tensor) -> torch.Tensor:
    """Return each row's cosines with all rows of the other view except its own: (B, N)."""
    return off_diagonal(functional.normalize(one_BD, dim=-1) @ functional.normalize(other_BD, dim=-1).T)


@full_precision
def list_net(s_BN: torch.Tensor, t_BN: torch.Tensor, temperature: float, target_temperature: float) -> torch.Tensor:
    """Return the cross-entropy of the lists' top-one probabilities (ListNet, Cao et al., 2007): a scalar ≥ 0."""
    p_BN = functional.softmax(t_BN / target_temperature, dim=1)
    return -(p_BN * functional.log_softmax(s_BN / temperature, dim=1)).sum(dim=1).mean()


@full_precision
def list_mle(s_BN: torch.Tensor, t_BN: torch.Tensor, temperature: float, _: float) -> torch.Tensor:
    """Return −log P(π | s), π the target's order (ListMLE, Xia et al., 2008): a scalar ≥ 0.

    P is the Plackett-Luce probability: for each place, a softmax over the sentences not yet placed. The loss is a sum
    over places, so it grows with the batch.
    """
    order_BN = t_BN.argsort(dim=1, descending=True, stable=True)
    ordered_BN = s_BN.gather(1, order_BN) / temperature
    remaining_BN = ordered_BN.flip(1).logcumsumexp(dim=1).flip(1)
    return (remaining_BN - ordered_BN).sum(dim=1).mean()


@full_precision
def jensen_shannon(
    s_BN: torch.Tensor, t_BN: torch.Tensor, temperature: float, target_temperature: float
) -> torch.Tensor:
    """Return the Jensen-Shannon divergence of the lists' top-one probabilities: a scalar in [0, log 2]."""
    log_p_BN = functional.log_softmax(t_BN / target_temperature, dim=1)
    log_q_BN = functional.log_softmax(s_BN / temperature, dim=1)
    log_m_BN = torch.logaddexp(log_p_BN, log_q_BN) - math.log(2)
    target_side = functional.kl_div(log_m_BN, log_p_BN, reduction="batchmean", log_target=True)
    online_side = functional.kl_div(log_m_BN, log_q_BN, reduction="batchmean", log_target=True)
    return 0.5 * (target_side + online_side)


_RANKINGS: Final[Mapping[str, Callable[[torch.Tensor, torch.Tensor, float, float], torch.Tensor]]] = {
    "listnet": list_net,
    "listmle": list_mle,
    "js": jensen_shannon,
}
