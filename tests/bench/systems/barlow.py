"""Barlow Twins with BSL's two branches."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import torch
from torch.nn import functional

from models.objectives.config import BarlowConfig
from tests.bench.two_branch_steps import two_branch_steps

PEER = "its published loss, restated in padded torch"
CONFIG = BarlowConfig()


def steps(encoder_folder: Path, pairs: pl.DataFrame) -> tuple[Callable[[], float], Callable[[], float]]:
    """Return our step and the plain one."""
    return two_branch_steps(encoder_folder, pairs, CONFIG, loss)


def loss(z_BD: torch.Tensor, t_BD: torch.Tensor) -> torch.Tensor:
    """Penalise the correlation's distance from the identity, after batch normalisation without weights."""
    z_BD, t_BD = (functional.batch_norm(x_BD, None, None, training=True) for x_BD in (z_BD, t_BD))
    correlation_DD = z_BD.T @ t_BD / len(z_BD)
    other_DD = ~torch.eye(len(correlation_DD), dtype=torch.bool)
    diagonal = (correlation_DD.diagonal() - 1).pow(2).sum()
    return diagonal + CONFIG.redundancy * correlation_DD[other_DD].pow(2).sum()
