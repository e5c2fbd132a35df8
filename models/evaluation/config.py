"""What encoders are scored on, how, and how uncertainty is drawn."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from models.runtime.precision import Precision

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


class BootstrapConfig(BaseModel):
    """How the uncertainty of a figure is drawn."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    resamples: int = Field(1000, ge=100, le=100_000)
    """Draws for each 95 % interval."""
    seed: int = Field(0, ge=0)
    """Of the draws."""


Supervision = Literal["10-fold", "10-fold-disjoint", "cross-topic"]
FOLDS_OF: Final[dict[Supervision, int]] = {"10-fold": 10, "10-fold-disjoint": 10, "cross-topic": 3}
AfsProtocol = Literal["unsupervised", "10-fold", "10-fold-disjoint", "cross-topic"]


class ScoringConfig(BaseModel):
    """How an encoder's vectors are made and scored as they are."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    precision: Precision = "auto"
    """Arithmetic of the encoder; bf16 moves scores by hundredths of a point. `auto`: bf16 where the device computes in
    it natively, else fp32."""
    bootstrap: BootstrapConfig = BootstrapConfig()
    """How the 95 % interval of each figure is drawn."""
    probe: ProbeConfig = ProbeConfig()
    """How SentEval's classifiers are trained."""


class EvaluationConfig(ScoringConfig):
    """What a run's encoder is scored on, before and after training."""

    sets: tuple[str, ...] = Field(("stsb/dev", "stsb/test"), min_length=1)
    """Suites such as `sts` or `senteval`, and sets such as `stsb/dev` or `trec`, in the order of the tables."""
    dev: str | None = "stsb/dev"
    """Set whose Spearman selects the best step of training; None keeps the last step."""
