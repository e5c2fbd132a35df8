"""A classifier of pairs above two sentence vectors, and the labels that it learns.

Shapes: B pairs, D width, F features of a pair, C classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import torch
from torch import nn
from torch.nn import functional

from models.errors import TrainingError
from models.objectives.precision import full_precision
from models.transfer import uploaded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from models.objectives.batch import Batch
    from models.objectives.supervised_config import ClassifierSettings, Feature

FEATURES: Final[Mapping[Feature, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]]] = {
    "u": lambda u_BD, _: u_BD,
    "v": lambda _, v_BD: v_BD,
    "|u-v|": lambda u_BD, v_BD: (u_BD - v_BD).abs(),
    "u*v": lambda u_BD, v_BD: u_BD * v_BD,
}


class PairClassifier(nn.Module):
    """Softmax classifier on a concatenation of what two vectors give (SBERT section 3, figure 1)."""

    def __init__(self, width: int, config: ClassifierSettings) -> None:
        super().__init__()
        self._features = config.features
        wide = len(config.features) * width
        if config.head == "linear":
            self.layers = nn.Sequential(nn.Linear(wide, config.classes))
        else:
            self.layers = nn.Sequential(nn.Linear(wide, wide // 2), nn.Linear(wide // 2, config.classes))

    def forward(self, u_BD: torch.Tensor, v_BD: torch.Tensor) -> torch.Tensor:
        """Logits (B, C) of pairs."""
        joined_BF = torch.cat([FEATURES[name](u_BD, v_BD) for name in self._features], dim=-1)
        logits_BC: torch.Tensor = self.layers(joined_BF)
        return logits_BC


def labels_of(batch: Batch, classes: int, device: torch.device) -> torch.Tensor:
    """The labels (B,) of a batch.

    Raises:
        TrainingError: A label is none of the classes.
    """
    assert batch.labels is not None
    lowest, highest = int(batch.labels.min()), int(batch.labels.max())
    if lowest < 0 or highest >= classes:
        raise TrainingError(
            f"labels from {lowest} to {highest} in a batch, expected 0 to {classes - 1}; set "
            "training.objective.classes to their number, or drop pairs without a label"
        )
    return uploaded(batch.labels, device)


@full_precision
def cross_entropy(logits_BC: torch.Tensor, labels_B: torch.Tensor) -> torch.Tensor:
    """Mean of −log softmax(logits)[label], a scalar ≥ 0."""
    return functional.cross_entropy(logits_BC, labels_B)
