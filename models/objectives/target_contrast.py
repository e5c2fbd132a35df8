"""Contrast between prediction and target: whose target vector is it (MoCo v3, Chen et al., 2021; its queue MoCo's).

Shapes: B pairs, D width, Q places of the queue.
"""

from __future__ import annotations

import torch
from torch.nn import functional

from models.objectives.precision import full_precision


@full_precision
def target_contrast(z_BD: torch.Tensor, t_BD: torch.Tensor, queue_QD: torch.Tensor, temperature: float) -> torch.Tensor:
    """Cross-entropy of finding each row's target vector among the batch's and the queue's by cosine: a scalar ≥ 0.

    Args:
        z_BD: Predictions from one view.
        t_BD: Target vectors of the other; no gradient flows into them.
        queue_QD: Unit target vectors of earlier batches; rows of zeros are places that are not taken.
        temperature: Divides the cosines.
    """
    u_BD, v_BD = functional.normalize(z_BD, dim=-1), functional.normalize(t_BD.detach(), dim=-1)
    vacant_Q = (queue_QD == 0).all(dim=1)
    queued_BQ = (u_BD @ queue_QD.T).masked_fill(vacant_Q, float("-inf"))
    logits_BN = torch.cat([u_BD @ v_BD.T, queued_BQ], dim=1) / temperature
    return functional.cross_entropy(logits_BN, torch.arange(len(u_BD), device=u_BD.device))
