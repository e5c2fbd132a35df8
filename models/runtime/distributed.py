"""Several processes embed one batch together: each its share of the rows, and all receive all vectors.

What follows (predictor, batch statistics, negatives, loss) every process computes on the whole batch, so it equals one
process by construction and no objective needs to know. It is a small part of a step; the encoder is shared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import distributed

from models.errors import TrainingError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def processes() -> int:
    """Processes that train together; 1 if this one is alone."""
    return distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1


def own_share(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """This process's part of the rows of a batch.

    Raises:
        TrainingError: The rows cannot be shared equally.
    """
    share, left = divmod(len(rows), processes())
    if left:
        raise TrainingError(
            f"a batch of {len(rows)} sentences cannot be shared equally by {processes()} processes; set "
            "training.batch_size to a multiple of them, or another number of processes"
        )
    start = share * distributed.get_rank() if processes() > 1 else 0
    return rows[start : start + share]


def gather_shares(x_SD: torch.Tensor) -> torch.Tensor:
    """The vectors of all processes in the order of the rows, (B, D), from each one's share (S, D); differentiable.

    Each process must go on to compute the same loss. Its own rows then carry the gradient of the whole loss, and
    the gradients of shared weights have to be summed over the processes.
    """
    if processes() == 1:
        return x_SD
    x_BD: torch.Tensor = _Gather.apply(x_SD)  # type: ignore[no-untyped-call]
    return x_BD


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_SD: torch.Tensor) -> torch.Tensor:  # noqa: ANN401  torch's own signature
        ctx.rows = len(x_SD)
        shares = [torch.empty_like(x_SD) for _ in range(processes())]
        distributed.all_gather(shares, x_SD.contiguous())
        return torch.cat(shares)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:  # noqa: ANN401
        start = distributed.get_rank() * ctx.rows
        return grads[0][start : start + ctx.rows].contiguous()
