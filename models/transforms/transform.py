"""Interface of post-hoc transforms, which are fitted on a corpus's vectors and applied to evaluated vectors.

Shapes: N vectors, D their width, K their width after the transform.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch
    from pydantic import JsonValue

    from models.training.snapshots import Execution


class Transform(ABC):
    """A fitted map from vectors to vectors.

    Attributes:
        config: Settings of the transform.
        tensors: All fitted values, by name.
        figures: Measurements of the fit; empty for a restored transform.
    """

    def __init__(self, config: Any, tensors: Mapping[str, torch.Tensor]) -> None:  # noqa: ANN401 - each has its own
        self.config = config
        self.tensors = dict(tensors)
        self.figures: dict[str, JsonValue] = {}

    @classmethod
    @abstractmethod
    def fit(cls, vectors_ND: torch.Tensor, config: Any, execution: Execution) -> Transform:  # noqa: ANN401
        """Fit the transform on a corpus's vectors.

        Raises:
            EvaluationError: The transform cannot be fitted on these vectors under these settings.
            TrainingError: The fit was asked to stop, or cannot resume from a saved state.
        """

    @abstractmethod
    def apply(self, vectors_ND: torch.Tensor) -> torch.Tensor:
        """Return transformed vectors of the same encoder: (N, K), float32."""

    def linear(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Return W (K, D) and μ (D,), float64, if the transform is W (x − μ) scaled to length 1; otherwise None."""
        return None
