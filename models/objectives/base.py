"""The interface between an objective and the training loop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from torch import nn

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

    from models.encoder.network import Encoder
    from models.encoder.tokens import Tokens


class Objective(nn.Module, ABC):
    """Networks and a loss over batches of pairs; `online` is the encoder that training is for.

    Attributes:
        parts: Names of the modules that a snapshot saves and restores; all state stands in one of them.
    """

    parts: ClassVar[tuple[str, ...]] = ("online",)

    def __init__(self, online: Encoder) -> None:
        super().__init__()
        self.online = online

    @abstractmethod
    def forward(
        self, tokens: Tokens, rows_1: NDArray[np.int64], rows_2: NDArray[np.int64], batch_tokens: int
    ) -> torch.Tensor:
        """The loss of a batch of B pairs, a scalar.

        Args:
            tokens: All sentences.
            rows_1: (B,) sentence numbers of view 1.
            rows_2: (B,) sentence numbers of view 2, pair by pair.
            batch_tokens: Padded tokens a forward pass of an encoder; changes rounding only.
        """

    def learning_parameters(self) -> list[nn.Parameter]:
        """What the optimizer may change."""
        return [parameter for parameter in self.parameters() if parameter.requires_grad]

    def update_target(self, momentum: float) -> None:
        """Move the target, if there is one, after an optimizer step (equation 4)."""
