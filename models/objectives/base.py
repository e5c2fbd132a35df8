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
    from models.encoder.tokenization import Tokenizer
    from models.objectives.objective import Batch, Need


class Objective(nn.Module, ABC):
    """Networks and a loss over batches of pairs; `online` is the encoder that training is for.

    Attributes:
        parts: Names of the modules that a snapshot saves and restores; all state stands in one of them.
        needs: What a batch must hold besides the two views; pairs that lack it are refused before the first step.
        split: Of the parts, those that each of several processes runs on its share of a batch; others see all of it.
    """

    parts: ClassVar[tuple[str, ...]] = ("online",)
    needs: ClassVar[frozenset[Need]] = frozenset()
    split: ClassVar[tuple[str, ...]] = ("online",)

    def __init__(self, online: Encoder) -> None:
        super().__init__()
        self.online = online

    @abstractmethod
    def forward(self, batch: Batch, batch_tokens: int) -> torch.Tensor:
        """The loss of a batch of B pairs, a scalar.

        Args:
            batch: The pairs, with what the objective `needs`.
            batch_tokens: Padded tokens a forward pass of an encoder; changes rounding only.
        """

    def read_vocabulary(self, tokenizer: Tokenizer) -> None:
        """Learn of the tokens what the objective must know, before the first step; most need nothing."""

    def meet_teacher(self, sample: Batch, vectors_ND: NDArray[np.float32]) -> None:  # for objectives with one
        """Make what depends on the teacher: called once before the first step, where pairs come with its vectors.

        Args:
            sample: Some of the pairs.
            vectors_ND: The teacher's vectors of all N sentences, which may be memory-mapped.
        """

    def learning_parameters(self) -> list[nn.Parameter]:
        """What the optimizer may change."""
        return [parameter for parameter in self.parameters() if parameter.requires_grad]

    def momentum(self, step: int, total: int) -> float | None:  # noqa: ARG002 - for objectives with a target
        """δ after optimizer step `step` (1-based) of `total`; None for an objective without a target."""
        return None

    def update_target(self, momentum: float) -> None:
        """Move the target, if there is one, after an optimizer step (equation 4)."""
