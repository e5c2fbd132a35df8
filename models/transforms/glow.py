"""Glow on sentence vectors (Kingma & Dhariwal, 2018), as in BERT-flow (Li et al., 2020; flow/glow_1x1.py).

A vector is an image of one pixel whose channels are its dimensions, so there is no squeezing and every convolution is a
matrix. A level has several steps (actnorm, mixing of channels, additive coupling). After each level but the last, the
second half of the channels is finished and only the first half continues. The finished channels, in order, are z.

Only actnorm and mixing change the volume, and not by the input, so the log-determinant is one number for all vectors.

Shapes: B vectors, D their width, W channels of a level, K channels that a coupling leaves unchanged, M channels that it
changes, H width of its hidden layers, P parameters.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import torch
from torch import nn
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bsl.models.transforms.config import FlowConfig


_SCALE_FACTOR: Final = 3.0  # log scale = 3 × parameter, which speeds up learning (glow_ops_1x1.py)
_FIRST_STD: Final = 0.05  # of a hidden layer's initial weights (glow_ops_1x1.py)
_TINY: Final = 1e-6  # added to a standard deviation (glow_ops_1x1.py)


class ActNorm(nn.Module):
    """Actnorm: y = (x + b) · e^(3s), channel by channel.

    Attributes:
        initialises: Whether a pass first initialises b and s so that its channels get mean 0 and variance 1.
    """

    initialises = False

    def __init__(self, width: int) -> None:
        super().__init__()
        self.shift_W = nn.Parameter(torch.zeros(width))
        self.scale_W = nn.Parameter(torch.zeros(width))

    def forward(self, x_BW: torch.Tensor) -> torch.Tensor:
        """Return y, (B, W)."""
        if self.initialises:
            mean_W = x_BW.mean(dim=0)
            std_W = (x_BW - mean_W).square().mean(dim=0).sqrt()
            self.shift_W.copy_(-mean_W)
            self.scale_W.copy_(-(std_W + _TINY).log() / _SCALE_FACTOR)
        return (x_BW + self.shift_W) * (_SCALE_FACTOR * self.scale_W).exp()

    def log_determinant(self) -> torch.Tensor:
        """Return log |∂y/∂x|, a scalar."""
        return self.scale_W.sum() * _SCALE_FACTOR


class Reversal(nn.Module):
    """Reversed order of channels, without parameters: `"permutation": true` of config_l3_d3_w32.json."""

    def forward(self, x_BW: torch.Tensor) -> torch.Tensor:
        """Return the mixed channels, (B, W)."""
        return x_BW.flip(-1)

    def log_determinant(self) -> torch.Tensor:
        """Return log |∂y/∂x|, 0."""
        return torch.zeros(())


class Convolution(nn.Module):
    """Glow's 1×1 convolution, y = P L (U + diag(σ e^s)) x, initialised as a random rotation.

    Permutation P and signs σ are fixed; L has ones on its diagonal, and U has zeros.
    """

    order: torch.Tensor  # (W,)
    sign: torch.Tensor  # (W,)

    def __init__(self, width: int, generator: torch.Generator) -> None:
        super().__init__()
        rotation_WW, _ = torch.linalg.qr(torch.randn(width, width, generator=generator, dtype=torch.float64))
        permutation_WW, lower_WW, upper_WW = torch.linalg.lu(rotation_WW)
        diagonal_W = upper_WW.diagonal()
        self.register_buffer("order", permutation_WW.argmax(dim=1))
        self.register_buffer("sign", diagonal_W.sign().float())
        self.lower_WW = nn.Parameter(lower_WW.tril(-1).float())
        self.upper_WW = nn.Parameter(upper_WW.triu(1).float())
        self.log_W = nn.Parameter(diagonal_W.abs().log().float())

    def forward(self, x_BW: torch.Tensor) -> torch.Tensor:
        """Return the mixed channels, (B, W)."""
        lower_WW = self.lower_WW.tril(-1) + torch.eye(len(self.log_W), dtype=self.log_W.dtype)
        upper_WW = self.upper_WW.triu(1) + (self.sign * self.log_W.exp()).diag()
        return (x_BW @ upper_WW.T @ lower_WW.T)[:, self.order]

    def log_determinant(self) -> torch.Tensor:
        """Return log |∂y/∂x|, a scalar."""
        total: torch.Tensor = self.log_W.sum()
        return total


class Coupling(nn.Module):
    """Additive coupling: (x₁, x₂) ↦ (x₁, x₂ + m(x₁)), which preserves volume for any m (NICE, Dinh et al., 2015).

    m has two hidden layers, each with actnorm and ReLU, and a last layer initialised to 0, so that m starts as 0.
    """

    def __init__(self, width: int, hidden: int, generator: torch.Generator) -> None:
        super().__init__()
        self.moved = width // 2
        self.kept = width - self.moved
        self.first_HK = nn.Parameter(torch.randn(hidden, self.kept, generator=generator) * _FIRST_STD)
        self.first_norm = ActNorm(hidden)
        self.second_HH = nn.Parameter(torch.randn(hidden, hidden, generator=generator) * _FIRST_STD)
        self.second_norm = ActNorm(hidden)
        self.last_MH = nn.Parameter(torch.zeros(self.moved, hidden))
        self.last_M = nn.Parameter(torch.zeros(self.moved))
        self.scale_M = nn.Parameter(torch.zeros(self.moved))

    def forward(self, x_BW: torch.Tensor) -> torch.Tensor:
        """Return (x₁, x₂ + m(x₁)), (B, W)."""
        kept_BK, moved_BM = x_BW[:, : self.kept], x_BW[:, self.kept :]
        return torch.cat((kept_BK, moved_BM + self._move(kept_BK)), dim=1)

    def _move(self, x_BK: torch.Tensor) -> torch.Tensor:
        h_BH = self.first_norm(functional.linear(x_BK, self.first_HK)).relu()
        h_BH = self.second_norm(functional.linear(h_BH, self.second_HH)).relu()
        moved_BM = functional.linear(h_BH, self.last_MH, self.last_M)
        return moved_BM * (_SCALE_FACTOR * self.scale_M).exp()


class Step(nn.Module):
    """One step of a level: actnorm, mixing, coupling."""

    def __init__(self, width: int, config: FlowConfig, generator: torch.Generator) -> None:
        super().__init__()
        self.norm = ActNorm(width)
        # A linear map of the channels, so that consecutive couplings change different ones.
        self.mixing = Reversal() if config.mixing == "reversal" else Convolution(width, generator)
        self.coupling = Coupling(width, config.hidden, generator)

    def forward(self, x_BW: torch.Tensor) -> torch.Tensor:
        """Return the step's output, (B, W)."""
        y_BW: torch.Tensor = self.coupling(self.mixing(self.norm(x_BW)))
        return y_BW


class Glow(nn.Module):
    """The flow from vectors x to z, which training makes standard normal."""

    def __init__(self, width: int, config: FlowConfig) -> None:
        """Initialise the weights by the configuration's seed.

        Args:
            width: D, at least 2^levels.
            config: Shape of the network.
        """
        super().__init__()
        generator = torch.Generator().manual_seed(config.seed)
        # The first half of an odd width is the larger one.
        self.widths = [math.ceil(width / 2**level) for level in range(config.levels)]
        self.levels: Sequence[Sequence[Step]] = nn.ModuleList(  # type: ignore[assignment]  # it is one
            nn.ModuleList(Step(channels, config, generator) for _ in range(config.depth)) for channels in self.widths
        )

    def forward(self, x_BD: torch.Tensor) -> torch.Tensor:
        """Return z (B, D), the finished channels in the order of the levels."""
        finished = []
        for number, steps in enumerate(self.levels):
            for step in steps:
                x_BD = step(x_BD)
            if number + 1 < len(self.widths):
                goes_on = self.widths[number + 1]
                finished.append(x_BD[:, goes_on:])
                x_BD = x_BD[:, :goes_on]
        return torch.cat((*finished, x_BD), dim=1)

    @torch.no_grad()
    def init_actnorm(self, x_BD: torch.Tensor) -> None:
        """Initialise every actnorm by data, so that its outputs for these vectors have mean 0 and variance 1."""
        norms = [module for module in self.modules() if isinstance(module, ActNorm)]
        for norm in norms:
            norm.initialises = True
        self(x_BD)
        for norm in norms:
            norm.initialises = False

    def log_determinant(self) -> torch.Tensor:
        """Return log |∂z/∂x|, a scalar, the same for all vectors."""
        return torch.stack(
            [part.log_determinant() for steps in self.levels for step in steps for part in (step.norm, step.mixing)]
        ).sum()

    def bits_per_dimension(self, x_BD: torch.Tensor) -> torch.Tensor:
        """Return the mean of −log₂ p(x) / D, where log p(x) = log N(z; 0, 1) + log |∂z/∂x| (Li et al., 2020)."""
        z_BD = self(x_BD)
        width = z_BD.shape[1]
        squares = z_BD.square().sum() / len(z_BD)
        nats = 0.5 * (squares + width * math.log(2 * math.pi)) - self.log_determinant()
        bits: torch.Tensor = nats / (width * math.log(2))
        return bits


BETA_1: Final = 0.9
BETA_2: Final = 0.999


class FlatAdam:
    """Adam on one flat vector: θ ← θ − η (m / (√v + ε) + λθ), without bias correction (optimization_bert_flow.py).

    The network's parameters become views of one vector, and so do their gradients.

    Attributes:
        state: Live parameters and moments, each (P,); a snapshot contains these.
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
        """Clip the gradient, update parameters and moments, and reset the gradient to zero."""
        config, gradient_P = self.config, self._gradient_P
        theta_P, first_P, second_P = self.state.values()
        # Computed as a tensor, without reading its value.
        gradient_P *= (config.clip / gradient_P.norm()).clamp(max=1.0)
        first_P.lerp_(gradient_P, 1 - BETA_1)
        second_P.mul_(BETA_2).addcmul_(gradient_P, gradient_P, value=1 - BETA_2)
        theta_P.mul_(1 - config.lr * config.weight_decay)
        theta_P.addcdiv_(first_P, second_P.sqrt().add_(config.eps), value=-config.lr)
        gradient_P.zero_()

    def restore(self, state: Mapping[str, torch.Tensor]) -> None:
        """Restore parameters and moments from a snapshot."""
        for name, values_P in self.state.items():
            values_P.copy_(state[name])
