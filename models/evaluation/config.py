"""How uncertainty is drawn, and how encoders are fine-tuned on a task."""

from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

Precision = Literal["fp32", "bf16"]
Supervision = Literal["10-fold", "10-fold-disjoint", "cross-topic"]
FOLDS_OF: Final[dict[Supervision, int]] = {"10-fold": 10, "10-fold-disjoint": 10, "cross-topic": 3}
ArgumentProtocol = Literal["unsupervised", "10-fold", "10-fold-disjoint", "cross-topic"]


class BootstrapConfig(BaseModel):
    """How the uncertainty of a figure is drawn."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    resamples: int = Field(1000, ge=100, le=100_000)
    """Draws for each 95 % interval."""
    seed: int = Field(0, ge=0)
    """Of the draws."""


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
