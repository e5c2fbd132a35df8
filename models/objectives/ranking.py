"""Ranking consistency: in which order other sentences resemble one (RankCSE, Liu et al., 2023, section 3).

A sentence's list holds its cosines with the other view of each other sentence of the batch; its own other view is left
out, for it leads every list. In RankCSE another trained encoder gives the order. Deviation: here it is the target.

Shapes: B pairs, D width, N = B − 1 others.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import torch
from torch.nn import functional

from models.objectives.precision import full_precision

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from models.objectives.two_branch_config import BSLConfig

Pair = tuple[torch.Tensor, torch.Tensor]


def ranking_loss(h: Pair, t: Pair, config: BSLConfig) -> torch.Tensor:
    """How far the online encoder's lists are from the target's, averaged over batch and views: a scalar ≥ 0.

    Args:
        h: The online encoder's vectors of view 1 and view 2, each (B, D).
        t: The target's, each (B, D); no gradient flows into them.
        config: Which loss, and its temperatures.
    """
    loss = _RANKINGS[config.ranking]
    temperatures = config.ranking_temperature, config.ranking_target_temperature
    first = loss(lists(*h), lists(*t).detach(), *temperatures)
    second = loss(lists(*h[::-1]), lists(*t[::-1]).detach(), *temperatures)
    return 0.5 * (first + second)


@full_precision
def lists(one_BD: torch.Tensor, other_BD: torch.Tensor) -> torch.Tensor:
    """Cosines of each row of one view with the rows of the other, its own left out: (B, N)."""
    return off_diagonal(functional.normalize(one_BD, dim=-1) @ functional.normalize(other_BD, dim=-1).T)


def off_diagonal(x_BB: torch.Tensor) -> torch.Tensor:
    """A square matrix without its diagonal, (B, B − 1); a mask as index would make a GPU wait for its count."""
    size = len(x_BB)
    return x_BB.flatten()[1:].view(size - 1, size + 1)[:, :-1].reshape(size, size - 1)


@full_precision
def list_net(s_BN: torch.Tensor, t_BN: torch.Tensor, temperature: float, target_temperature: float) -> torch.Tensor:
    """Cross-entropy of who comes first, by the softmax of either list (ListNet, Cao et al., 2007): a scalar ≥ 0."""
    p_BN = functional.softmax(t_BN / target_temperature, dim=1)
    return -(p_BN * functional.log_softmax(s_BN / temperature, dim=1)).sum(dim=1).mean()


@full_precision
def list_mle(s_BN: torch.Tensor, t_BN: torch.Tensor, temperature: float, _: float) -> torch.Tensor:
    """−log P(π | s), π the target's order (ListMLE, Xia et al., 2008): a scalar ≥ 0.

    P is Plackett and Luce's: at each place the softmax over those who have none yet. Summed over places, so that it
    grows with the batch.
    """
    order_BN = t_BN.argsort(dim=1, descending=True, stable=True)
    ordered_BN = s_BN.gather(1, order_BN) / temperature
    left_BN = ordered_BN.flip(1).logcumsumexp(dim=1).flip(1)
    return (left_BN - ordered_BN).sum(dim=1).mean()


@full_precision
def jensen_shannon(
    s_BN: torch.Tensor, t_BN: torch.Tensor, temperature: float, target_temperature: float
) -> torch.Tensor:
    """Jensen-Shannon divergence of who comes first, by the softmax of either list: a scalar in [0, log 2]."""
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
