"""What a post-hoc transform is: fitted on a corpus's vectors without labels, applied to the vectors that are scored.

Shapes: N vectors, D their width, K the width they are given.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch


class Transform(ABC):
    """A map from vectors to vectors that was fitted.

    Attributes:
        config: its settings.
        tensors: all that was learnt, by name.
    """

    def __init__(self, config: Any, tensors: Mapping[str, torch.Tensor]) -> None:  # noqa: ANN401 - each has its own
        self.config = config
        self.tensors = dict(tensors)

    @classmethod
    @abstractmethod
    def fit(cls, vectors_ND: torch.Tensor, config: Any) -> Transform:  # noqa: ANN401
        """Learn from a corpus's vectors.

        Raises:
            EvaluationError: nothing can be learnt from them under these settings.
        """

    @abstractmethod
    def apply(self, vectors_ND: torch.Tensor) -> torch.Tensor:
        """Other vectors of the same encoder, changed: (N, K), float32."""
