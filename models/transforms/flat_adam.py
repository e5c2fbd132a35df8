"""Adam on one vector: for networks of many small layers, where an operation costs more than its arithmetic.

Shapes: P parameters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import torch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import nn

    from models.transforms.config import FlowConfig

BETA_1: Final = 0.9
BETA_2: Final = 0.999


class FlatAdam:
    """θ ← θ − η (m / (√v + ε) + λθ), m and v not corrected for their start (BERT-flow, optimization_bert_flow.py).

    The network's parameters become parts of one vector, and so do their gradients.

    Attributes:
        state: parameters and moments, each (P,), as they are: what a snapshot holds.
    """

    def __init__(self, network: nn.Module, config: FlowConfig) -> None:
        self.config = config
        parameters = list(network.parameters())
        theta_P = torch.cat([parameter.detach().flatten() for parameter in parameters])
        self._gradient_P = torch.zeros_like(theta_P)
        self.state = {
            "parameters": theta_P,
            "first_moment": torch.zeros_like(theta_P),
            "second_moment": torch.zeros_like(theta_P),
        }
        sizes = [parameter.numel() for parameter in parameters]
        parts = zip(parameters, torch.split(theta_P, sizes), torch.split(self._gradient_P, sizes), strict=True)
        for parameter, values, gradient in parts:
            parameter.data = values.view_as(parameter)
            parameter.grad = gradient.view_as(parameter)  # which backward() adds to in place

    @torch.no_grad()
    def step(self) -> None:
        """Clip, move and forget the gradient."""
        config, gradient_P = self.config, self._gradient_P
        theta_P, first_P, second_P = self.state.values()
        # A tensor, so that nothing waits for its value.
        gradient_P *= (config.clip / gradient_P.norm()).clamp(max=1.0)
        first_P.lerp_(gradient_P, 1 - BETA_1)
        second_P.mul_(BETA_2).addcmul_(gradient_P, gradient_P, value=1 - BETA_2)
        theta_P.mul_(1 - config.lr * config.weight_decay)
        theta_P.addcdiv_(first_P, second_P.sqrt().add_(config.eps), value=-config.lr)
        gradient_P.zero_()

    def restore(self, state: Mapping[str, torch.Tensor]) -> None:
        """Put back what a snapshot held."""
        for name, values_P in self.state.items():
            values_P.copy_(state[name])
