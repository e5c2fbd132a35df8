"""Glow on sentence vectors (Kingma & Dhariwal, 2018), as BERT-flow has it (Li et al., 2020; flow/glow_1x1.py).

A vector is an image of one pixel whose channels are its dimensions: nothing is squeezed, and every convolution is a
matrix. A level is some steps (actnorm, mixing of channels, additive coupling); after each level but the last, the
second half of the channels is finished and the first half goes on. All that is finished, in order, is z.

Volume changes in actnorm and mixing alone, by amounts that no vector decides, so the log-determinant is one number.

Shapes: B vectors, D their width, W channels of a level, K those that a coupling leaves, M those that it moves, H
width of its hidden layers, P parameters.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final, Literal

import torch
from torch import nn
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from models.transforms.config import FlowConfig


_SCALE_FACTOR: Final = 3.0  # logarithms of scales are learnt as thirds, which speeds them up (glow_ops_1x1.py)
_FIRST_STD: Final = 0.05  # of a hidden layer's first weights (glow_ops_1x1.py)
_TINY: Final = 1e-6  # beside a standard deviation (glow_ops_1x1.py)


class ActNorm(nn.Module):
    """y = (x + b) · e^(3s), channel by channel."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.shift_W = nn.Parameter(torch.zeros(width))
        self.scale_W = nn.Parameter(torch.zeros(width))

    def forward(self, x_BW: torch.Tensor) -> torch.Tensor:
        """(B, W)."""
        return (x_BW + self.shift_W) * (_SCALE_FACTOR * self.scale_W).exp()

    def log_determinant(self) -> torch.Tensor:
        """Log |∂y/∂x|, a number."""
        return self.scale_W.sum() * _SCALE_FACTOR

    @torch.no_grad()
    def settle(self, x_BW: torch.Tensor) -> torch.Tensor:
        """Start where every channel of these vectors leaves with mean 0 and variance 1; returns what leaves."""
        mean_W = x_BW.mean(dim=0)
        std_W = (x_BW - mean_W).square().mean(dim=0).sqrt()
        self.shift_W.copy_(-mean_W)
        self.scale_W.copy_(-(std_W + _TINY).log() / _SCALE_FACTOR)
        y_BW: torch.Tensor = self(x_BW)
        return y_BW


class Mixing(nn.Module, ABC):
    """A linear map of the channels, so that each coupling moves others than the one before it."""

    @abstractmethod
    def forward(self, x_BW: torch.Tensor) -> torch.Tensor:
        """(B, W)."""

    @abstractmethod
    def log_determinant(self) -> torch.Tensor:
        """Log |∂y/∂x|, a number."""


class Reversal(Mixing):
    """The channels in reverse order, nothing learnt: `"permutation": true` of config_l3_d3_w32.json."""

    def __init__(self, width: int, generator: torch.Generator) -> None:  # noqa: ARG002 - as the other mixing
        super().__init__()

    def forward(self, x_BW: torch.Tensor) -> torch.Tensor:
        """See `Mixing.forward`."""
        return x_BW.flip(-1)

    def log_determinant(self) -> torch.Tensor:
        """0."""
        return torch.zeros(())


class Convolution(Mixing):
    """Glow's learnt 1×1 convolution, y = P L (U + diag(σ e^s)) x, which begins as a random rotation.

    Permutation P and signs σ stay; L has ones on its diagonal and U zeros.
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
        """See `Mixing.forward`."""
        lower_WW = self.lower_WW.tril(-1) + torch.eye(len(self.log_W), dtype=self.log_W.dtype)
        upper_WW = self.upper_WW.triu(1) + (self.sign * self.log_W.exp()).diag()
        return (x_BW @ upper_WW.T @ lower_WW.T)[:, self.order]

    def log_determinant(self) -> torch.Tensor:
        """See `Mixing.log_determinant`."""
        total: torch.Tensor = self.log_W.sum()
        return total


MIXINGS: Final[dict[Literal["reversal", "convolution"], type[Reversal | Convolution]]] = {
    "reversal": Reversal,
    "convolution": Convolution,
}


class Coupling(nn.Module):
    """(x₁, x₂) ↦ (x₁, x₂ + m(x₁)): volume stays, whatever m is (NICE, Dinh et al., 2015).

    m is two hidden layers, each with actnorm and ReLU, and a last one that begins at 0: at first nothing is moved.
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
        """(B, W)."""
        kept_BK, moved_BM = x_BW[:, : self.kept], x_BW[:, self.kept :]
        return torch.cat((kept_BK, moved_BM + self._move(kept_BK)), dim=1)

    @torch.no_grad()
    def settle(self, x_BW: torch.Tensor) -> torch.Tensor:
        """Settle the hidden layers on these vectors; returns what leaves."""
        h_BH = self.first_norm.settle(functional.linear(x_BW[:, : self.kept], self.first_HK)).relu()
        self.second_norm.settle(functional.linear(h_BH, self.second_HH))
        y_BW: torch.Tensor = self(x_BW)
        return y_BW

    def _move(self, x_BK: torch.Tensor) -> torch.Tensor:
        h_BH = self.first_norm(functional.linear(x_BK, self.first_HK)).relu()
        h_BH = self.second_norm(functional.linear(h_BH, self.second_HH)).relu()
        moved_BM = functional.linear(h_BH, self.last_MH, self.last_M)
        return moved_BM * (_SCALE_FACTOR * self.scale_M).exp()


class Step(nn.Module):
    """Actnorm, mixing, coupling."""

    def __init__(self, width: int, config: FlowConfig, generator: torch.Generator) -> None:
        super().__init__()
        self.norm = ActNorm(width)
        self.mixing: Mixing = MIXINGS[config.mixing](width, generator)
        self.coupling = Coupling(width, config.hidden, generator)

    def forward(self, x_BW: torch.Tensor) -> torch.Tensor:
        """(B, W)."""
        y_BW: torch.Tensor = self.coupling(self.mixing(self.norm(x_BW)))
        return y_BW

    def settle(self, x_BW: torch.Tensor) -> torch.Tensor:
        """Settle on these vectors; returns what leaves."""
        return self.coupling.settle(self.mixing(self.norm.settle(x_BW)))


class Glow(nn.Module):
    """Vectors to z, which is to be standard normal."""

    def __init__(self, width: int, config: FlowConfig) -> None:
        """First weights by the configuration's seed.

        Args:
            width: D, at least 2^levels.
            config: the network's shape.
        """
        super().__init__()
        generator = torch.Generator().manual_seed(config.seed)
        # The first half of an odd width is the larger one.
        self.widths = [math.ceil(width / 2**level) for level in range(config.levels)]
        self.levels: Sequence[Sequence[Step]] = nn.ModuleList(  # type: ignore[assignment]  # it is one
            nn.ModuleList(Step(channels, config, generator) for _ in range(config.depth)) for channels in self.widths
        )

    def forward(self, x_BD: torch.Tensor) -> torch.Tensor:
        """Z (B, D): what the first level finished first, what the last one did last."""
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
    def settle(self, x_BD: torch.Tensor) -> None:
        """Data-dependent initialisation: every actnorm leaves these vectors with mean 0 and variance 1."""
        for number, steps in enumerate(self.levels):
            x_BD = x_BD[:, : self.widths[number]]
            for step in steps:
                x_BD = step.settle(x_BD)

    def log_determinant(self) -> torch.Tensor:
        """Log |∂z/∂x|, a number: of all vectors alike."""
        return torch.stack(
            [part.log_determinant() for steps in self.levels for step in steps for part in (step.norm, step.mixing)]
        ).sum()

    def bits_per_dimension(self, x_BD: torch.Tensor) -> torch.Tensor:
        """−log₂ p(x) / D, averaged: log p(x) = log N(z; 0, 1) + log |∂z/∂x| (Li et al., 2020)."""
        z_BD = self(x_BD)
        width = z_BD.shape[1]
        squares = z_BD.square().sum() / len(z_BD)
        nats = 0.5 * (squares + width * math.log(2 * math.pi)) - self.log_determinant()
        bits: torch.Tensor = nats / (width * math.log(2))
        return bits


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
