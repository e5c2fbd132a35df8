"""BSL with the paper's settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import torch
from torch.nn import functional

from benchmarks.speed.two_branch_steps import two_branch_steps
from bsl.models.objectives.bsl_config import BSLConfig

PEER = "the authors' BYOLoss.py, restated in padded torch"


def steps(encoder_folder: Path, pairs: pl.DataFrame) -> tuple[Callable[[], float], Callable[[], float]]:
    """Return our step and the plain one, both with the scale of the released code."""
    return two_branch_steps(encoder_folder, pairs, BSLConfig(loss_scale="released"), loss)


def loss(z_BD: torch.Tensor, t_BD: torch.Tensor) -> torch.Tensor:
    """Mean of 2 − 2 cos over unit vectors."""
    return (2 - 2 * (functional.normalize(z_BD, dim=-1) * functional.normalize(t_BD, dim=-1)).sum(dim=-1)).mean()
