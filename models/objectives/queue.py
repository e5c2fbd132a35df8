"""The last sentences' vectors, first in, first out: what others are compared with.

Shapes: N sentences, B of a batch, Q places, D width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from models.objectives.config import check_places

if TYPE_CHECKING:
    from numpy.typing import NDArray


class VectorQueue(nn.Module):
    """Q unit vectors, the oldest of which make way for a batch's.

    Attributes:
        vectors: (Q, D), in no order; a row of zeros is a place that is not taken.
        place: Where the next vector goes.
    """

    vectors: torch.Tensor
    place: torch.Tensor

    def __init__(self, places: int = 0, width: int = 0) -> None:
        super().__init__()
        self.register_buffer("vectors", torch.zeros(places, width))
        self.register_buffer("place", torch.zeros((), dtype=torch.int64))

    def fill(self, vectors_ND: NDArray[np.float32], places: int) -> None:
        """Make `places` places and put vectors of sentences into them that are drawn at random from torch.

        Raises:
            TrainingError: There are fewer sentences than places.
        """
        check_places(places, len(vectors_ND))
        rows = np.sort(torch.randperm(len(vectors_ND))[:places].numpy())
        self.vectors = functional.normalize(torch.from_numpy(np.array(vectors_ND[rows])), dim=-1).to(self.place.device)

    @torch.no_grad()
    def push(self, vectors_BD: torch.Tensor) -> None:
        """Put a batch into the places of the oldest vectors; nothing if there are none."""
        places = len(self.vectors)
        if places == 0:
            return
        newest = functional.normalize(vectors_BD[-places:], dim=-1)
        at = (self.place + torch.arange(len(newest), device=newest.device)) % places
        # Not in place: the loss of this batch still needs what it was compared with.
        self.vectors = self.vectors.index_copy(0, at, newest.to(self.vectors.dtype))
        self.place.copy_((self.place + len(newest)) % places)
