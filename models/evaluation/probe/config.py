"""How the transfer tasks are run. The defaults are the setting that the papers report."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

ProbeProtocol = Literal["senteval", "fast"]


class ProbeConfig(BaseModel):
    """SentEval's literature setting, with its names: kfold 10, nhid 0, Adam, batch 64, tenacity 5, epoch size 4."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    protocols: tuple[ProbeProtocol, ...] = Field(("senteval", "fast"), min_length=1)
    """`senteval`: early-stopped Adam, quirks included; `fast`: exact L2 logistic regression over the same folds."""
    folds: int = Field(10, ge=2, le=100)
    """Outer folds, and inner folds of each search."""
    seed: int = Field(1111, ge=0, lt=2**32)
    """Decides first weights, data order, the 5 % that the last fit holds out, and the folds of TREC and MRPC."""
    batch_size: int = Field(64, ge=1, le=65536)
    """Rows of an Adam step."""
    epoch_size: int = Field(4, ge=1, le=100)
    """Passes between two looks at the dev accuracy."""
    max_epoch: int = Field(200, ge=0, le=10_000)
    """No round starts after more passes than this."""
    tenacity: int = Field(5, ge=0, le=1000)
    """Looks without improvement, counted over the whole fit, that are forgiven; the next one stops it."""
    tolerance: float = Field(1e-4, gt=0, lt=1)
    """`fast`: bound on the gradient's norm over the weights' norm (at least 1) at which a fit is solved."""
