"""BSL's loss (equations 1 and 2), and the contrastive term that may stand beside it.

Shapes: B pairs, D width. All sums are taken in fp32 or better.
"""

from __future__ import annotations

import torch
from torch.nn import functional

from models.objectives.precision import full_precision


@full_precision
def negative_cosine(z_BD: torch.Tensor, h_BD: torch.Tensor) -> torch.Tensor:
    """D(z, h) = −⟨z/‖z‖, h/‖h‖⟩ for each pair (equation 1): (B,), in [-1, 1], −1 where the two point the same way."""
    return -functional.cosine_similarity(z_BD, h_BD, dim=-1)


def bootstrap_loss(z1_BD: torch.Tensor, z2_BD: torch.Tensor, h1_BD: torch.Tensor, h2_BD: torch.Tensor) -> torch.Tensor:
    """L = ½ D(z₁, h₂) + ½ D(z₂, h₁), averaged over the batch (equation 2): a scalar in [-1, 1].

    Args:
        z1_BD: Predictions from view 1 (online network).
        z2_BD: Predictions from view 2 (online network).
        h1_BD: Target vectors of view 1; no gradient flows into them.
        h2_BD: Target vectors of view 2; no gradient flows into them.
    """
    one = negative_cosine(z1_BD, h2_BD.detach())
    two = negative_cosine(z2_BD, h1_BD.detach())
    return (0.5 * one + 0.5 * two).mean()


@full_precision
def contrastive_loss(h1_BD: torch.Tensor, h2_BD: torch.Tensor, temperature: float) -> torch.Tensor:
    """InfoNCE over the batch, both directions averaged: a scalar ≥ 0.

    Row i of one view should find row i of the other among the whole batch by cosine similarity.
    """
    u_BD, v_BD = functional.normalize(h1_BD, dim=-1), functional.normalize(h2_BD, dim=-1)
    logits_BB = u_BD @ v_BD.T / temperature
    own = torch.arange(len(logits_BB), device=logits_BB.device)
    return 0.5 * (functional.cross_entropy(logits_BB, own) + functional.cross_entropy(logits_BB.T, own))
