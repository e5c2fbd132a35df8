"""A step of BERT-flow: ours and a plain one, restated after UKPLab/pytorch-bertflow (which has no tests or bench).

The plain one has the parts of that port: 1×1 convolutions over images of one pixel, the reversal as a convolution with
a fixed matrix, log-densities by `torch.distributions`, and Adam without bias correction in a loop over parameters. Both
get finished vectors; the port embeds every batch again in every epoch, and this time is not counted here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path

import polars as pl
import torch
from torch import nn
from torch.distributions import Normal
from torch.nn import functional

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.transforms.config import FlowConfig
from bsl.models.transforms.glow import ActNorm, FlatAdam, Glow, Step

CONFIG = FlowConfig()
TEXTS = 1024  # batches cycle through these texts


def steps(encoder_folder: Path, pairs: pl.DataFrame) -> tuple[Callable[[], float], Callable[[], float]]:
    """Return our step and the plain one, with equal initial weights and batches; each returns bits per dimension."""
    encoder = SentenceEncoder.load(
        encoder_folder, EncoderConfig(model=str(encoder_folder), pooling="first-last", max_length=64)
    )
    texts = pl.concat([pairs["text_1"], pairs["text_2"]]).unique(maintain_order=True).head(TEXTS).to_list()
    batches = list(torch.split(torch.tensor(encoder.encode(texts)), CONFIG.batch_size))
    ours = Glow(batches[0].shape[1], CONFIG)
    ours.init_actnorm(batches[0])
    plain = PlainGlow(ours)
    return _our_steps(ours, batches), _plain_steps(plain, batches)


def _our_steps(glow: Glow, batches: list[torch.Tensor]) -> Callable[[], float]:
    adam, order = FlatAdam(glow, CONFIG), itertools.cycle(batches)

    def step() -> float:
        loss = glow.bits_per_dimension(next(order))
        loss.backward()  # type: ignore[no-untyped-call]
        adam.step()
        return float(loss.detach())

    return step


def _plain_steps(glow: PlainGlow, batches: list[torch.Tensor]) -> Callable[[], float]:
    parameters, order = list(glow.parameters()), itertools.cycle(batches)
    moments = [(torch.zeros_like(p), torch.zeros_like(p)) for p in parameters]

    def step() -> float:
        loss = glow(next(order))
        for p in parameters:
            p.grad = None
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, CONFIG.clip, foreach=False)
        with torch.no_grad():
            for number, p in enumerate(parameters):
                m, v = moments[number]
                assert p.grad is not None
                m = 0.9 * m + (1 - 0.9) * p.grad
                v = 0.999 * v + (1 - 0.999) * p.grad**2
                moments[number] = (m, v)
                p.add_(-CONFIG.lr * (m / (torch.sqrt(v) + CONFIG.eps) + CONFIG.weight_decay * p))
        return float(loss.detach())

    return step


class PlainActNorm(nn.Module):
    def __init__(self, ours: ActNorm) -> None:
        super().__init__()
        self.shift = nn.Parameter(ours.shift_W.detach().clone().view(1, -1, 1, 1))
        self.scale = nn.Parameter(ours.scale_W.detach().clone().view(1, -1, 1, 1))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scale = self.scale * 3
        return torch.exp(scale) * (x + self.shift), x.shape[2] * x.shape[3] * scale.sum()


class PlainStep(nn.Module):
    reversal: torch.Tensor

    def __init__(self, ours: Step, width: int) -> None:
        super().__init__()
        self.norm = PlainActNorm(ours.norm)
        self.register_buffer("reversal", torch.eye(width).flip(0).view(width, width, 1, 1))
        net = ours.coupling
        self.first, self.second, self.last = (
            nn.Parameter(matrix.detach().clone()[:, :, None, None])
            for matrix in (net.first_HK, net.second_HH, net.last_MH)
        )
        self.first_norm, self.second_norm = PlainActNorm(net.first_norm), PlainActNorm(net.second_norm)
        self.bias = nn.Parameter(net.last_M.detach().clone())
        self.scale = nn.Parameter(net.scale_M.detach().clone().view(1, -1, 1, 1))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x, log_determinant = self.norm(x)
        first, second = functional.conv2d(x, self.reversal).chunk(2, dim=1)
        hidden = functional.relu(self.first_norm(functional.conv2d(first, self.first))[0])
        hidden = functional.relu(self.second_norm(functional.conv2d(hidden, self.second))[0])
        moved = functional.conv2d(hidden, self.last, self.bias) * torch.exp(self.scale * 3)
        return torch.cat([first, second + moved], dim=1), log_determinant


class PlainGlow(nn.Module):
    """Computes bits per dimension of vectors, with our initial weights."""

    def __init__(self, ours: Glow) -> None:
        super().__init__()
        levels = zip(ours.levels, ours.widths, strict=True)
        self.levels = [[PlainStep(step, width) for step in level] for level, width in levels]
        self.registered = nn.ModuleList(step for level in self.levels for step in level)

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        x, log_p, done = vectors[:, :, None, None], torch.zeros(len(vectors)), []
        for number, level in enumerate(self.levels):
            for step in level:
                x, log_determinant = step(x)
                log_p = log_p + log_determinant
            if number + 1 < len(self.levels):
                x, half = x.chunk(2, dim=1)
                done.append(half)
                log_p = log_p + _log_prob(half)
        log_p = log_p + _log_prob(x)
        torch.cat([*done, x], dim=1)  # z, computed by the port in every step
        return (-log_p / (math.log(2) * vectors.shape[1])).mean()


def _log_prob(x: torch.Tensor) -> torch.Tensor:
    zeros = torch.zeros_like(x)
    density: torch.Tensor = Normal(zeros, torch.exp(zeros)).log_prob(x)  # type: ignore[no-untyped-call]
    return density.sum(dim=(1, 2, 3))
