"""What encoders are scored on, how, and how uncertainty is drawn."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from models.evaluation.probe.config import ProbeConfig
from models.evaluation.significance.config import BootstrapConfig
from models.runtime.precision import Precision

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
