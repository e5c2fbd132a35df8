"""What a post-hoc transform is: fitted on a corpus's vectors without labels, applied to the vectors that are scored.

Shapes: N vectors, D their width, K the width that they are given.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import torch
    from pydantic import JsonValue

    from models.runtime.progress import OnProgress


@dataclass(frozen=True)
class Fitting:
    """How a fit that takes steps is watched and kept; nothing here changes what is learnt.

    Attributes:
        work: Folder for snapshots of this fit alone, from which a killed one goes on; None keeps nothing.
        minutes: After which a snapshot is due, however few steps were done; None for by steps only.
        keep: Snapshots kept.
        should_stop: Asked after each step; True saves and raises InterruptedRunError.
        on_progress: Called as (steps done, steps in all, detail).
    """

    work: Path | None = None
    minutes: float | None = None
    keep: int = 2
    should_stop: Callable[[], bool] | None = None
    on_progress: OnProgress | None = None


class Transform(ABC):
    """A map from vectors to vectors that was fitted.

    Attributes:
        config: its settings.
        tensors: all that was learnt, by name.
        figures: what the fit measured; empty for one that was restored.
    """

    def __init__(self, config: Any, tensors: Mapping[str, torch.Tensor]) -> None:  # noqa: ANN401 - each has its own
        self.config = config
        self.tensors = dict(tensors)
        self.figures: dict[str, JsonValue] = {}

    @classmethod
    @abstractmethod
    def fit(cls, vectors_ND: torch.Tensor, config: Any, fitting: Fitting) -> Transform:  # noqa: ANN401
        """Learn from a corpus's vectors.

        Raises:
            EvaluationError: nothing can be learnt from them under these settings.
            TrainingError: it takes steps, and was asked to stop or meets a saved state that it cannot go on from.
        """

    @abstractmethod
    def apply(self, vectors_ND: torch.Tensor) -> torch.Tensor:
        """Other vectors of the same encoder, changed: (N, K), float32."""

    def linear(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        """W (K, D) and μ (D,), float64, where the transform is W (x − μ) scaled to length 1, as encoders take it in."""
        return None
