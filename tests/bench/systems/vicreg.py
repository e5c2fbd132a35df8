"""VICReg with BSL's two branches."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import torch
from torch.nn import functional

from models.objectives.config import VICRegConfig
from tests.bench.two_branch_steps import two_branch_steps

PEER = "its published loss, restated in padded torch"


def steps(encoder_folder: Path, pairs: pl.DataFrame) -> tuple[Callable[[], float], Callable[[], float]]:
    """Return our step and the plain one; as in the published code, its loss includes the target's constant terms."""
    return two_branch_steps(encoder_folder, pairs, VICRegConfig(), loss)


def loss(z_BD: torch.Tensor, t_BD: torch.Tensor) -> torch.Tensor:
    """25 · invariance + 25 · variance + covariance."""
    spread = sum(functional.relu(1 - torch.sqrt(x_BD.var(dim=0) + 1e-4)).mean() / 2 for x_BD in (z_BD, t_BD))
    return 25 * functional.mse_loss(z_BD, t_BD) + 25 * spread + sum(map(_covariance, (z_BD, t_BD)))


def _covariance(x_BD: torch.Tensor) -> torch.Tensor:
    rows, width = x_BD.shape
    centred_BD = x_BD - x_BD.mean(dim=0)
    covariance_DD = centred_BD.T @ centred_BD / (rows - 1)
    return covariance_DD[~torch.eye(width, dtype=torch.bool)].pow(2).sum() / width
