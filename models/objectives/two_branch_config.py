"""Settings of the objectives in BSL's two-branch network."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from models.objectives.settings import NestedSettings


class TwoBranchConfig(NestedSettings):
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
    """`constant` as published. Deviation: `cosine` raises δ to 1 over the run (BYOL, section 3.2)."""
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
    """`paper`: equation 2, in [-1, 1]; `released`: 4 + 4 times that, in [0, 8]. Alone it matters through clipping and
    Adam's ε only; the weights of further terms are beside the scaled loss."""
    contrastive_weight: float = Field(default=0.0, ge=0, le=10)
    """Weight of an in-batch contrastive term beside the loss.
    Deviation: 0 is published; above 0 the other pairs of the batch serve as negatives (InfoNCE, both directions)."""
    temperature: float = Field(default=0.05, gt=0, le=1)
    """Temperature of both contrastive terms; used where a weight is above 0 (SimCSE: 0.05; MoCo: 0.07)."""
    target_contrastive_weight: float = Field(default=0.0, ge=0, le=10)
    """Weight of a contrastive term between prediction and target beside the loss, as in MoCo v3 (Chen et al., 2021).
    Deviation: 0 is published; above 0 a prediction must find its target vector among the batch's and the queue's."""
    queue: int = Field(default=0, ge=0, le=1 << 20)
    """Target vectors of earlier batches that are further negatives of that term, the last ones seen (MoCo, He et al.,
    2020: 65,536); 0 leaves the batch's alone."""
    ranking: Literal["listnet", "listmle", "js"] = "listnet"
    """How the online encoder's lists of similarities are held against the target's (RankCSE, Liu et al., 2023, section
    3): `listnet` is the cross-entropy of who comes first, `listmle` the likelihood of the target's whole order, `js`
    the Jensen-Shannon divergence that RankCSE takes between two views."""
    ranking_weight: float = Field(default=0.0, ge=0, le=10)
    """Weight of the ranking term beside the loss.
    Deviation: 0 is published; above 0 the online encoder learns in which order the target has a batch's sentences."""
    ranking_temperature: float = Field(default=0.05, gt=0, le=1)
    """Divides the online encoder's cosines in the ranking term (RankCSE: τ2 = 0.05)."""
    ranking_target_temperature: float = Field(default=0.025, gt=0, le=1)
    """Divides the target's cosines in the ranking term (RankCSE: half of τ2); `listmle` reads their order alone."""

    @model_validator(mode="after")
    def _the_queue_is_used(self) -> Self:
        if self.queue > 0 and self.target_contrastive_weight == 0:
            raise ValueError(
                f"a queue of {self.queue:,} target vectors serves the contrastive term between prediction and target, "
                "whose weight is 0; set target_contrastive_weight too, such as 0.1, or leave the queue out"
            )
        return self

    @property
    def label(self) -> str:
        """The paper's claim is "without negative pairs": with them, or with ranks, it is another method."""
        terms = {
            "in-batch negatives": self.contrastive_weight,
            "target negatives": self.target_contrastive_weight,
            "ranking": self.ranking_weight,
        }
        return " + ".join([self.title, *(term for term, weight in terms.items() if weight > 0)])


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
