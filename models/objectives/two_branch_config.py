"""Settings of the objectives in BSL's two-branch network."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from models.objectives.settings import ObjectiveSettings


class TwoBranchConfig(ObjectiveSettings):
    """Online network, predictor and momentum target: what BSL, VICReg and Barlow Twins share here."""

    predictor: Literal["paper", "released", "released-2021"] = "paper"
    """`paper`: one d→kd→kd→d block (§4); `released`: three chained d→kd→kd→d blocks, normalised after the first
    linear of each only (BYOLoss.py, where kd is 10d); `released-2021`: the same before the code's correction of
    2021-10-22 (ef8cf63), where view 2 passed the second block twice and the third never."""
    k: int = Field(default=8, ge=1, le=64)
    """Hidden width of the predictor in multiples of the encoder's width d (paper: 8; released code: 10)."""
    norm: Literal["batch", "layer", "none"] = "batch"
    """Normalisation inside the predictor. `batch` is published and keeps its statistics per view.
    Deviation: `layer` and `none` need no statistics across rows; the author reports that little is lost."""
    momentum: float = Field(default=0.999, ge=0, le=1)
    """δ of equation 4: the share of the target kept at each step; 0 copies the online encoder, 1 freezes the target."""
    momentum_schedule: Literal["constant", "cosine"] = "constant"
    """`constant` as published. Deviation: `cosine` raises δ to 1 over the run, as BYOL does."""
    target_dropout: bool = False
    """Whether the target runs in training mode. The paper does not say; the released code leaves it on. Off by default:
    on `bert-mini` it was better with both seeds (FIDELITY.md)."""
    target_norm: Literal["none", "center", "standardize"] = "none"
    """What is taken out of the target's vectors before the loss.
    Deviation: `center` subtracts a running mean, `standardize` also divides by a running standard deviation. As
    published (`none`), the mean direction that all vectors of a small masked language model share already gives a
    constant prediction cosine 0.97, and training keeps only that; without it, only what tells sentences apart is
    left."""
    target_norm_momentum: float = Field(default=0.9, ge=0, lt=1)
    """Share of the running statistics kept at each step; used by `center` and `standardize` only."""


class BSLConfig(TwoBranchConfig):
    """BSL as published (paper section 3, Table 8); the defaults are the paper's."""

    title: ClassVar[str] = "BSL"
    citation: ClassVar[str] = (
        "Zhang, He, Liu, Bing and Li, 2021. Bootstrapped Unsupervised Sentence Representation Learning. ACL."
    )

    name: Literal["bsl"] = "bsl"
    loss_scale: Literal["paper", "released"] = "paper"
    """`paper`: equation 2, in [-1, 1]; `released`: 4 + 4 times that, in [0, 8]. Matters through clipping only."""
    contrastive_weight: float = Field(default=0.0, ge=0, le=10)
    """Weight of an in-batch contrastive term beside the loss.
    Deviation: 0 is published; above 0 the other pairs of the batch serve as negatives (InfoNCE, both directions)."""
    temperature: float = Field(default=0.05, gt=0, le=1)
    """Temperature of the contrastive term; used where its weight is above 0 (SimCSE: 0.05)."""

    @property
    def label(self) -> str:
        """The paper's claim is "without negative pairs": with them it is another method."""
        return f"{self.title} + in-batch negatives" if self.contrastive_weight > 0 else self.title


class VICRegConfig(TwoBranchConfig):
    """VICReg (Bardes et al., 2022) against a momentum target, as in UNSEE (Çağatan, 2024)."""

    title: ClassVar[str] = "VICReg"
    citation: ClassVar[str] = (
        "Bardes, Ponce and LeCun, 2022. VICReg: Variance-Invariance-Covariance Regularization for "
        "Self-Supervised Learning. ICLR."
    )

    name: Literal["vicreg"] = "vicreg"
    invariance: float = Field(default=25.0, ge=0)
    """Weight of the squared distance between prediction and target (published: 25)."""
    variance: float = Field(default=25.0, ge=0)
    """Weight of the hinge that keeps each dimension's standard deviation above 1 (published: 25)."""
    covariance: float = Field(default=1.0, ge=0)
    """Weight of the squared covariances between dimensions (published: 1)."""


class BarlowConfig(TwoBranchConfig):
    """Barlow Twins (Zbontar et al., 2021) against a momentum target, as in UNSEE (Çağatan, 2024)."""

    title: ClassVar[str] = "Barlow Twins"
    citation: ClassVar[str] = (
        "Zbontar, Jing, Misra, LeCun and Deny, 2021. Barlow Twins: Self-Supervised Learning via Redundancy "
        "Reduction. ICML."
    )

    name: Literal["barlow"] = "barlow"
    redundancy: float = Field(default=0.0051, ge=0)
    """λ: weight of the squared correlations between different dimensions (published: 0.0051)."""
