"""What decides a pre-training run: optimizer, schedule, budget."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from models.precision import Precision


class LearningConfig(BaseModel):
    """Optimizer, schedule and budget of one pre-training run."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    optimizer: Literal["adamw", "muon"] = "muon"
    """AdamW for everything, or Muon (orthogonalised momentum) for hidden matrices and AdamW for the rest."""
    peak_lr: float = Field(default=2e-3, gt=0)
    """Learning rate after warm-up; Muon's is matched to AdamW's by update size (arXiv 2502.16982)."""
    beta2: float = Field(default=0.98, gt=0, lt=1)
    """AdamW's second-moment decay."""
    weight_decay: float = Field(default=0.01, ge=0)
    """Decoupled decay of matrices; embeddings, norms and biases are not decayed."""
    warmup_steps: int = Field(default=200, ge=0)
    """Optimizer steps of linear warm-up."""
    clip_norm: float = Field(default=1.0, gt=0)
    """Largest global gradient norm."""
    steps: int = Field(default=1000, ge=1)
    """Step budget, over which the rate falls linearly to zero; reproducible."""
    minutes: float | None = Field(default=None, gt=0)
    """Wall-clock budget instead of `steps`: the rate falls with elapsed time. Not reproducible."""
    seed: int = Field(default=0, ge=0)
    """Decides initial weights, order of examples and masks."""
    precision: Precision = "auto"
    """Arithmetic of matrix products; weights stay fp32. `auto`: bf16 where the device computes in it natively, else
    fp32."""
