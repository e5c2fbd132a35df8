"""InfoNCE (van den Oord et al., 2018): find a vector's partner among many by cosine.

Shapes: B pairs, D width.
"""

from __future__ import annotations

import torch
from torch.nn import functional

from bsl.models.objectives.objective import full_precision


@full_precision
def info_nce(
    u_BD: torch.Tensor,
    v_BD: torch.Tensor,
    temperature: float,
    *,
    symmetric: bool = False,
) -> torch.Tensor:
    """Return the mean over i of −log exp(cos(uᵢ, vᵢ)/τ) / Σⱼ exp(cos(uᵢ, vⱼ)/τ), a scalar ≥ 0.

    SimCSE's equation 4 (Gao et al., 2021).

    Args:
        u_BD: Vectors that look for their partners.
        v_BD: Their partners, row by row; each row is a negative for all other rows of u.
        temperature: τ.
        symmetric: Average with the loss of finding u from v.

    Example:
        >>> info_nce(torch.eye(2), torch.eye(2), temperature=1.0)  # log(1 + 1/e)
        tensor(0.3133)
    """
    u_BD, v_BD = functional.normalize(u_BD, dim=-1), functional.normalize(v_BD, dim=-1)
    logits_BB = u_BD @ v_BD.T / temperature
    positives = torch.arange(len(u_BD), device=u_BD.device)
    loss = functional.cross_entropy(logits_BB, positives)
    return 0.5 * (loss + functional.cross_entropy(logits_BB.T, positives)) if symmetric else loss


@full_precision
def nt_xent(h1_BD: torch.Tensor, h2_BD: torch.Tensor, temperature: float) -> torch.Tensor:
    """Return NT-Xent: InfoNCE over all 2B vectors, each with 2(B − 1) negatives from both views; a scalar ≥ 0.

    SimCLR's equation 1 (Chen et al., 2020), which the BSL paper compares with (section 4.4).

    Example:
        >>> nt_xent(torch.eye(2), torch.eye(2), temperature=1.0)  # log(1 + 2/e)
        tensor(0.5514)
    """
    rows = len(h1_BD)
    u_2BD = functional.normalize(torch.cat([h1_BD, h2_BD]), dim=-1)
    logits = u_2BD @ u_2BD.T / temperature
    logits = logits.masked_fill(torch.eye(2 * rows, dtype=torch.bool, device=logits.device), float("-inf"))
    partner = torch.arange(2 * rows, device=logits.device).roll(rows)
    return functional.cross_entropy(logits, partner)
