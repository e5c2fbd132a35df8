"""InfoNCE (van den Oord et al., 2018): find a vector's partner among many by cosine.

Shapes: B pairs, N sentences, D width, Q places of a queue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from models.objectives.config import check_places
from models.objectives.objective import full_precision

if TYPE_CHECKING:
    from numpy.typing import NDArray


@full_precision
def info_nce(
    u_BD: torch.Tensor,
    v_BD: torch.Tensor,
    temperature: float,
    queue_QD: torch.Tensor | None = None,
    *,
    symmetric: bool = False,
) -> torch.Tensor:
    """Return the mean over i of −log exp(cos(uᵢ, vᵢ)/τ) / Σⱼ exp(cos(uᵢ, vⱼ)/τ), a scalar ≥ 0.

    SimCSE's equation 4 (Gao et al., 2021); with a queue, MoCo's equation 1 (He et al., 2020).

    Args:
        u_BD: Vectors that look for their partners.
        v_BD: Their partners, row by row; each row is a negative for all other rows of u.
        temperature: τ.
        queue_QD: Unit vectors that serve as further negatives; a row of zeros is an empty place.
        symmetric: Average with the loss of finding u from v.

    Example:
        >>> info_nce(torch.eye(2), torch.eye(2), temperature=1.0)  # log(1 + 1/e)
        tensor(0.3133)
    """
    u_BD, v_BD = functional.normalize(u_BD, dim=-1), functional.normalize(v_BD, dim=-1)
    cosines_BN = u_BD @ v_BD.T
    if queue_QD is not None:
        empty_Q = (queue_QD == 0).all(dim=1)
        cosines_BN = torch.cat([cosines_BN, (u_BD @ queue_QD.T).masked_fill(empty_Q, float("-inf"))], dim=1)
    logits_BN = cosines_BN / temperature
    positives = torch.arange(len(u_BD), device=u_BD.device)
    loss = functional.cross_entropy(logits_BN, positives)
    return 0.5 * (loss + functional.cross_entropy(logits_BN.T, positives)) if symmetric else loss


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


def off_diagonal(x_BB: torch.Tensor) -> torch.Tensor:
    """Return a square matrix without its diagonal, (B, B − 1).

    Indexing by a mask would make a GPU wait for the number of elements.
    """
    size = len(x_BB)
    return x_BB.flatten()[1:].view(size - 1, size + 1)[:, :-1].reshape(size, size - 1)


class VectorQueue(nn.Module):
    """Queue of Q unit vectors; the vectors of a new batch replace the oldest.

    Attributes:
        vectors: (Q, D), in no order; a row of zeros is an empty place.
        place: Row that the next vector replaces.
    """

    vectors: torch.Tensor
    place: torch.Tensor

    def __init__(self, places: int = 0, width: int = 0) -> None:
        super().__init__()
        self.register_buffer("vectors", torch.zeros(places, width))
        self.register_buffer("place", torch.zeros((), dtype=torch.int64))

    def fill(self, vectors_ND: NDArray[np.float32], places: int) -> None:
        """Fill the queue with `places` rows of `vectors_ND`, drawn at random from torch's generator and normalised.

        Raises:
            TrainingError: There are fewer sentences than places.
        """
        check_places(places, len(vectors_ND))
        rows = np.sort(torch.randperm(len(vectors_ND))[:places].numpy())
        self.vectors = functional.normalize(torch.from_numpy(np.array(vectors_ND[rows])), dim=-1).to(self.place.device)

    @torch.no_grad()
    def push(self, vectors_BD: torch.Tensor) -> None:
        """Replace the oldest vectors by a batch's; do nothing if the queue has no places."""
        places = len(self.vectors)
        if places == 0:
            return
        newest = functional.normalize(vectors_BD[-places:], dim=-1)
        at = (self.place + torch.arange(len(newest), device=newest.device)) % places
        # Not in place: the backward pass of this batch still needs the old vectors.
        self.vectors = self.vectors.index_copy(0, at, newest.to(self.vectors.dtype))
        self.place.copy_((self.place + len(newest)) % places)
