"""BSL: bootstrapped unsupervised sentence representation learning (Zhang et al., ACL 2021, section 3.1, figure 1).

    x₁, x₂ ─▶ online encoder f_θ ─▶ h₁, h₂ ─▶ predictor p_θ ─▶ z₁, z₂ ─┐
                                                                       ├─▶ loss L (equations 1 and 2)
    x₁, x₂ ─▶ target encoder f_ξ ─▶ t₁, t₂ ────────────────────────────┘   no gradient on this side

Symbols are the paper's with one exception: the paper calls the vectors of both encoders h. Here the online encoder's
vectors are h and the target's are t. Equation 3 is the optimizer's step. Our deviations, all off by default, are the
term `contrastive_weight` of the loss, and `TargetNorm`.

Shapes: B pairs, D encoder width, K = kD hidden width of the predictor.
"""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Final, Literal

import torch
from torch import nn
from torch.nn import functional

from bsl.models.objectives.info_nce import info_nce
from bsl.models.objectives.objective import VectorObjective, full_precision

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self

    from bsl.models.encoder.network import Encoder
    from bsl.models.objectives.bsl_config import BSLConfig
    from bsl.models.objectives.objective import Batch, VectorLoss


class BSL(VectorObjective):
    """Equation 2: L = ½ D(z₁, t₂) + ½ D(z₂, t₁), each view predicting the target's vector of the other.

    The target starts as a copy of the online encoder, requires no gradient, and is moved by `update_target` only.
    Source: Zhang, He, Liu, Bing and Li, ACL 2021, section 3.1; `released` settings as in the authors' BYOLoss.py.

    Example:
        >>> objective = BSL(encoder, BSLConfig(k=2))
        >>> loss = objective(batch)  # (B, D) vectors of both views → a scalar
        >>> -1 <= loss.item() <= 1
        True
        >>> loss.backward()
        >>> objective.update_target(momentum=0.999)
    """

    config: BSLConfig

    def __init__(self, online: Encoder, config: BSLConfig) -> None:
        super().__init__(online, config)
        self.target = copy.deepcopy(online).requires_grad_(False)
        self.predictor = Predictor(online.width, config)
        self.target_norm = TargetNorm(online.width, config)
        self.train()

    def train(self, mode: bool = True) -> Self:
        """Set training mode; the target follows only with `target_dropout`."""
        super().train(mode)
        self.target.train(mode and self.config.target_dropout)
        return self

    def vectors_and_loss(self, batch: Batch) -> tuple[Sequence[torch.Tensor], VectorLoss]:
        """Return h₁, h₂, t₁ and t₂, each (B, D), and `loss`."""
        h1_BD, h2_BD = self.online.embed_rows(batch.tokens, batch.rows).chunk(2)
        with torch.no_grad():
            t_2BD = self.target.embed_rows(batch.tokens, batch.rows)
            t1_BD, t2_BD = self.target_norm(t_2BD).chunk(2)
        return (h1_BD, h2_BD, t1_BD, t2_BD), self.loss

    def loss(self, h1_BD: torch.Tensor, h2_BD: torch.Tensor, t1_BD: torch.Tensor, t2_BD: torch.Tensor) -> torch.Tensor:
        """Return equation 2, at the configured scale, plus the weighted contrastive term; a scalar.

        The predictor is called once per view, so that batch normalisation has its statistics per view, as published.
        """
        z1_BD, z2_BD = self._predicted(h1_BD, 1), self._predicted(h2_BD, 2)
        loss = bootstrap_loss(z1_BD, z2_BD, t1_BD, t2_BD)
        if self.config.loss_scale == "released":
            loss = 4.0 + 4.0 * loss  # [2 − 2cos] + [2 − 2cos], not halved
        weight = self.config.contrastive_weight
        if weight > 0:
            loss = loss + weight * info_nce(h1_BD, h2_BD, self.config.temperature, symmetric=True)
        return loss

    def _predicted(self, h_BD: torch.Tensor, view: Literal[1, 2]) -> torch.Tensor:
        z_BD: torch.Tensor = self.predictor(self.widened(h_BD), view)
        return z_BD[:, : h_BD.shape[1]]

    def momentum(self, step: int, total: int) -> float:
        """Return δ after step `step` (1-based) of `total`: constant, or rising to 1 along a half cosine (BYOL §3.2)."""
        if self.config.momentum_schedule == "constant":
            return self.config.momentum
        return 1.0 - (1.0 - self.config.momentum) * (math.cos(math.pi * step / total) + 1.0) / 2.0

    def update_target(self, momentum: float) -> None:
        """Apply equation 4 with δ = `momentum`."""
        ema_update(self.target, self.online, momentum)


@full_precision
def negative_cosine(z_BD: torch.Tensor, t_BD: torch.Tensor) -> torch.Tensor:
    """Return D(z, t) = −⟨z/‖z‖, t/‖t‖⟩ of each pair (equation 1): (B,), in [-1, 1], −1 for equal directions.

    Example:
        >>> negative_cosine(torch.tensor([[1.0, 0.0]]), torch.tensor([[2.0, 0.0]]))
        tensor([-1.])
    """
    return -functional.cosine_similarity(z_BD, t_BD, dim=-1)


def bootstrap_loss(z1_BD: torch.Tensor, z2_BD: torch.Tensor, t1_BD: torch.Tensor, t2_BD: torch.Tensor) -> torch.Tensor:
    """Return L = ½ D(z₁, t₂) + ½ D(z₂, t₁), averaged over the batch (equation 2): a scalar in [-1, 1].

    Args:
        z1_BD: Predictions from view 1.
        z2_BD: Predictions from view 2.
        t1_BD: Target vectors of view 1; no gradient flows into them.
        t2_BD: Target vectors of view 2; no gradient flows into them.
    """
    one = negative_cosine(z1_BD, t2_BD.detach())
    two = negative_cosine(z2_BD, t1_BD.detach())
    return (0.5 * one + 0.5 * two).mean()


@torch.no_grad()
def ema_update(target: nn.Module, online: nn.Module, momentum: float) -> None:
    """Move the target towards the online network, in place: ξ ← δξ + (1 − δ)θ (equation 4).

    Weights stay in their own precision (fp32): in bf16, steps of (1 − 0.999) round to zero.

    Args:
        target: ξ; the same architecture as `online`.
        online: θ, read only.
        momentum: δ in [0, 1]; 0 copies θ, 1 leaves ξ unchanged.
    """
    lerp_all(list(target.parameters()), list(online.parameters()), 1.0 - momentum)
    for buffer, source in zip(target.buffers(), online.buffers(), strict=True):
        buffer.copy_(source)  # position tables and counters: an average would mean nothing


def lerp_all(targets: list[torch.Tensor], sources: list[torch.Tensor], weight: float) -> None:
    """Move tensors towards others in place, by one call where torch has it."""
    if hasattr(torch, "_foreach_lerp_"):  # a GPU would wait longer for 200 launches than for the arithmetic
        torch._foreach_lerp_(targets, sources, weight)
        return
    for target, source in zip(targets, sources, strict=True):
        target.lerp_(source, weight)


BLOCKS_OF_VIEWS: Final[Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]]] = {
    "paper": ((0,), (0,)),
    "released": ((0, 1, 2), (0, 1, 2)),
    "released-2021": ((0, 1, 2), (0, 1, 1)),
}
"""Predictor blocks that view 1 and view 2 pass through; BYOLoss.py calls them online_predictor_1, _2 and _3."""


class Predictor(nn.Module):
    """The predictor p_θ: h (B, D) → z (B, D) (section 4, "Implementation").

    `paper`: one block D→K→K→D, normalisation and ReLU after both hidden linears.
    `released`: three chained blocks of that shape, normalisation after the first linear of each only.
    `released-2021`: as `released`, but view 2 passes the second block twice and never the third.
    """

    def __init__(self, width: int, config: BSLConfig) -> None:
        super().__init__()
        self._blocks_of_views = BLOCKS_OF_VIEWS[config.predictor]
        blocks = max(self._blocks_of_views[0]) + 1
        self.blocks = nn.Sequential(*(_block(width, config.k * width, config) for _ in range(blocks)))

    def forward(self, h_BD: torch.Tensor, view: Literal[1, 2] = 1) -> torch.Tensor:
        """Return the predictions (B, D) from view 1 or 2."""
        z_BD = h_BD
        for block in self._blocks_of_views[view - 1]:
            z_BD = self.blocks[block](z_BD)
        return z_BD


def _block(width: int, hidden: int, config: BSLConfig) -> nn.Sequential:
    second = [_norm(hidden, config)] if config.predictor == "paper" else []
    return nn.Sequential(
        nn.Linear(width, hidden),
        _norm(hidden, config),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        *second,
        nn.ReLU(),
        nn.Linear(hidden, width),
    )


def _norm(hidden: int, config: BSLConfig) -> nn.Module:
    if config.norm == "batch":
        return nn.BatchNorm1d(hidden)
    return nn.LayerNorm(hidden) if config.norm == "layer" else nn.Identity()


FLOOR: Final = 1e-6  # smallest divisor, so that a constant dimension stays finite


class TargetNorm(nn.Module):
    """Remove a running mean (and spread) from the target's vectors; a deviation from the paper, off by default.

    Mean-pooled vectors of a raw masked language model share one dominant direction. With it in the target, a constant
    prediction reaches cosine 0.97 and the encoder forgets the differences between sentences. DINO (Caron et al., 2021)
    centres for the same reason.

    Example:
        >>> norm = TargetNorm(2, BSLConfig(target_norm="center"))
        >>> norm(torch.tensor([[1.0, 4.0], [3.0, 4.0]]))
        tensor([[-1.,  0.],
                [ 1.,  0.]])
    """

    mean: torch.Tensor
    variance: torch.Tensor
    batches: torch.Tensor

    def __init__(self, width: int, config: BSLConfig) -> None:
        super().__init__()
        self.kind = config.target_norm
        self.momentum = config.target_norm_momentum
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("variance", torch.ones(width))
        self.register_buffer("batches", torch.zeros((), dtype=torch.int64))

    @torch.no_grad()
    def forward(self, t_BD: torch.Tensor) -> torch.Tensor:
        """Update the statistics with this batch, then remove them: (B, D)."""
        if self.kind == "none":
            return t_BD
        if self.training:
            self._update(t_BD)
        centred_BD = t_BD - self.mean
        return centred_BD if self.kind == "center" else centred_BD / self.variance.sqrt().clamp_min(FLOOR)

    def _update(self, t_BD: torch.Tensor) -> None:
        # The first batch replaces the arbitrary initial values; later ones are averaged in.
        share = torch.where(self.batches == 0, 1.0, 1.0 - self.momentum)
        self.mean.lerp_(t_BD.mean(dim=0), share)
        self.variance.lerp_(t_BD.var(dim=0, unbiased=False), share)
        self.batches += 1
