"""Nested dimensions: the first d of a vector's dimensions are a vector too (Kusupati et al., 2022, "Matryoshka").

Their equation 1 with all weights 1: the loss of the whole vectors, plus that of their first d dimensions for each d of
the settings. A network above the encoder (predictor, head, classifier) is one for all: of its first layer the columns,
and of its last the rows, that belong to the first d (their "efficient" form, section 3).

Shapes: B pairs, D width, d dimensions that are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import torch


def nested(loss: Callable[..., torch.Tensor], dims: Sequence[int], width: int, *vectors: torch.Tensor) -> torch.Tensor:
    """Sum of a loss over the vectors and over their first d dimensions for each d of `dims`; a scalar.

    Args:
        loss: Of vectors of any width.
        dims: Widths beside the whole; none leave the loss as it is.
        width: D of the encoder; vectors of another width, such as a teacher's, are given whole each time.
        vectors: What `loss` is given, each (B, D).
    """
    total = loss(*vectors)
    for kept in dims:
        total = total + loss(*(x[:, :kept] if x.shape[1] == width else x for x in vectors))
    return total


def widened(x_Bd: torch.Tensor, width: int) -> torch.Tensor:
    """(B, D), zeros behind, so that a network's columns for them count nothing; unchanged where d = D."""
    return x_Bd if x_Bd.shape[1] == width else functional.pad(x_Bd, (0, width - x_Bd.shape[1]))


def tied(network: Callable[..., torch.Tensor], x_Bd: torch.Tensor, width: int, *arguments: object) -> torch.Tensor:
    """A network from D to D dimensions on the first d: (B, d) to (B, d)."""
    made_BD = network(widened(x_Bd, width), *arguments)
    return made_BD if x_Bd.shape[1] == width else made_BD[:, : x_Bd.shape[1]]
