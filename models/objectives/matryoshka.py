"""Matryoshka training: make the first d dimensions of a vector usable alone (Kusupati et al., 2022).

Shapes: B pairs, D width, d dimensions of truncated vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn import functional

from models.errors import TrainingError
from models.objectives.objective import Objective

if TYPE_CHECKING:
    from collections.abc import Sequence

    from models.objectives.objective import Batch, VectorObjective


class Matryoshka(Objective):
    """L(h) + Σ_d L(h[:d]): another objective's loss of the whole vectors and of their first d dimensions.

    Source: Kusupati et al., 2022, equation 1 with all weights 1. All d share the networks above the encoder (the
    "efficient" form, section 3): each uses the first d columns of its first layer; a predictor or head also uses only
    the first d rows of its last layer. All other attributes are those of the wrapped objective.

    Raises:
        TrainingError: A number in `dims` is not below the encoder's width.

    Example:
        >>> plain = Contrastive(encoder, ContrastiveConfig())
        >>> objective = Matryoshka(plain, dims=(8, 16))
        >>> objective(batch, batch_tokens=512).shape  # (B, D), (B, 8) and (B, 16) vectors → a scalar
        torch.Size([])
    """

    def __init__(self, objective: VectorObjective, dims: Sequence[int]) -> None:
        nn.Module.__init__(self)  # `online` is the wrapped objective's
        width = objective.online.width
        if wide := [dim for dim in dims if dim >= width]:
            raise TrainingError(
                f"training.objective.dims contains {wide}, expected numbers below the encoder's width {width}. Lower "
                "them."
            )
        self.objective, self.dims = objective, dims
        self.data_parallel, self.needs = objective.data_parallel, objective.needs
        # Methods that a plain objective has too, so that `__getattr__` does not find them.
        for name in ("saved_modules", "read_vocabulary", "meet_teacher", "momentum", "update_target"):
            setattr(self, name, getattr(objective, name))
        self._width = self._dim = width
        for name in (*objective.heads, *objective.classifiers):
            getattr(objective, name).register_forward_pre_hook(self._padded)
        for name in objective.heads:
            getattr(objective, name).register_forward_hook(self._cut)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  as torch's own
        """Return an attribute of the wrapped objective."""
        modules = self.__dict__["_modules"]
        return modules[name] if name in modules else getattr(modules["objective"], name)

    def forward(self, batch: Batch, batch_tokens: int) -> torch.Tensor:
        """Return the loss of a batch, summed over D and all d: a scalar."""
        vectors, loss = self.objective.vectors_and_loss(batch, batch_tokens)
        total = loss(*vectors)
        for dim in self.dims:
            self._dim = dim
            total = total + loss(*(x[:, :dim] for x in vectors))
        self._dim = self._width
        return total

    def _padded(self, _module: nn.Module, arguments: tuple[object, ...]) -> tuple[object, ...]:
        """Pad truncated vectors with zeros, so that the network's other columns have no effect."""
        behind = (0, self._width - self._dim)
        return tuple(functional.pad(x, behind) if isinstance(x, torch.Tensor) else x for x in arguments)

    def _cut(self, _module: nn.Module, _arguments: object, found_BD: torch.Tensor) -> torch.Tensor:
        return found_BD[:, : self._dim]
