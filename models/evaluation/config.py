"""What encoders are scored on, how, and how uncertainty is drawn."""

from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from models.evaluation.bootstrap import BootstrapConfig
from models.evaluation.probe.config import ProbeConfig

Precision = Literal["fp32", "bf16"]
Supervision = Literal["10-fold", "10-fold-disjoint", "cross-topic"]
FOLDS_OF: Final[dict[Supervision, int]] = {"10-fold": 10, "10-fold-disjoint": 10, "cross-topic": 3}
AfsProtocol = Literal["unsupervised", "10-fold", "10-fold-disjoint", "cross-topic"]


class ScoringConfig(BaseModel):
    """How an encoder's vectors are made and scored as they are."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    precision: Precision = "fp32"
    """Arithmetic of the encoder; bf16 is faster and moves scores by hundredths of a point."""
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


class FinetuneConfig(BaseModel):
    """SBERT's settings (section 3.1): Adam, 10 % linear warm-up, linear decay."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    lr: float = Field(2e-5, gt=0, le=1)
    """Peak learning rate."""
    batch_size: int = Field(16, ge=1, le=65536)
    """Pairs a step; the last, smaller batch of an epoch counts too."""
    epochs: int = Field(4, ge=1, le=1000)
    """Passes over the training pairs."""
    warmup: float = Field(0.1, ge=0, lt=1)
    """Share of the steps over which the learning rate rises."""
    weight_decay: float = Field(0.01, ge=0, le=1)
    """Decoupled, on matrices only."""
    clip: float = Field(1.0, gt=0)
    """Bound on the norm of all gradients together."""
    both_orders: bool = False
    """Train on (a, b) and on (b, a). The cosine is the same; dropout and batches are not."""


def stsb_config() -> FinetuneConfig:
    """SBERT on STS-B: batch 16, 4 epochs, lr 2e-5."""
    return FinetuneConfig()


def afs_config() -> FinetuneConfig:
    """UKP's settings for AFS: batch 32, 3 epochs, both orders; sentences are cut at 64 tokens by the encoder."""
    return FinetuneConfig(batch_size=32, epochs=3, both_orders=True)
