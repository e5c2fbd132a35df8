"""Settings of every objective; `name` says which one a section is for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, get_args

from pydantic import BeforeValidator, Field

from models.choices import named
from models.objectives.distil_config import DistilConfig
from models.objectives.isbert_config import ISBERTConfig
from models.objectives.settings import ObjectiveSettings
from models.objectives.supervised_config import CrossRegressionConfig, CrossSoftmaxConfig, SCLConfig, SoftmaxConfig

if TYPE_CHECKING:
    from collections.abc import Mapping


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


class ContrastiveConfig(ObjectiveSettings):
    """The paper's contrastive comparison (§4.4, Table 7): other sentences of the batch are pushed away; no target."""

    title: ClassVar[str] = "contrastive training"
    citation: ClassVar[str] = (
        "Chen, Kornblith, Norouzi and Hinton, 2020. A Simple Framework for Contrastive Learning of Visual "
        "Representations. ICML."
    )

    name: Literal["contrastive"] = "contrastive"
    temperature: float = Field(default=0.05, gt=0, le=1)
    """Divides the cosines. The paper does not give its value; SimCSE's is taken."""


class SimCSEConfig(ObjectiveSettings):
    """Unsupervised SimCSE (Gao et al., 2021): the first view twice under different dropout; view 2 is not used.

    The encoder must drop something: see `encoder.dropout`.
    """

    title: ClassVar[str] = "SimCSE"
    citation: ClassVar[str] = (
        "Gao, Yao and Chen, 2021. SimCSE: Simple Contrastive Learning of Sentence Embeddings. EMNLP."
    )

    name: Literal["simcse"] = "simcse"
    temperature: float = Field(default=0.05, gt=0, le=1)
    """Divides the cosines (published: 0.05)."""
    head: Literal["mlp", "none"] = "mlp"
    """`mlp`: a linear layer and tanh above the encoder in training only, as published for [CLS]; `none`: without."""


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


class RegressionConfig(ObjectiveSettings):
    """Mean squared error of the cosine against the pair's score (SBERT section 3); needs pairs with scores."""

    title: ClassVar[str] = "cosine regression"
    citation: ClassVar[str] = (
        "Reimers and Gurevych, 2019. Sentence-BERT: Sentence Embeddings using Siamese BERT-Networks. EMNLP."
    )

    name: Literal["regression"] = "regression"


class MaskedLMConfig(ObjectiveSettings):
    """Masked language modelling, as BERT was trained, continued on the corpus; only first views are read.

    The papers' baseline "BERT-mlm". What the sentence vectors do is not asked: keep the last step (`select`).
    """

    title: ClassVar[str] = "masked language modelling"
    citation: ClassVar[str] = (
        "Gururangan et al., 2020. Don't Stop Pretraining: Adapt Language Models to Domains and Tasks. ACL."
    )

    name: Literal["masked-lm"] = "masked-lm"
    share: float = Field(default=0.15, gt=0, lt=1)
    """Share of the tokens to guess (BERT: 15 %, of which 80 % are hidden, 10 % exchanged, 10 % shown)."""


class TSDAEConfig(ObjectiveSettings):
    """TSDAE: the second view is written out from the vector of the first, which is what deletion left of it.

    The decoder is the encoder's own layers run causally, so all its weights are tied but its attention to the vector.
    """

    title: ClassVar[str] = "TSDAE"
    citation: ClassVar[str] = (
        "Wang, Reimers and Gurevych, 2021. TSDAE: Using Transformer-based Sequential Denoising Auto-Encoder for "
        "Unsupervised Sentence Embedding Learning. Findings of EMNLP."
    )

    name: Literal["tsdae"] = "tsdae"


AnyObjective = (
    BSLConfig
    | ContrastiveConfig
    | SimCSEConfig
    | VICRegConfig
    | BarlowConfig
    | RegressionConfig
    | MaskedLMConfig
    | TSDAEConfig
    | ISBERTConfig
    | SoftmaxConfig
    | SCLConfig
    | CrossRegressionConfig
    | CrossSoftmaxConfig
    | DistilConfig
)
ObjectiveConfig = Annotated[AnyObjective, Field(discriminator="name"), BeforeValidator(named)]

OBJECTIVE_CONFIGS: Mapping[str, type[AnyObjective]] = {
    config.model_fields["name"].default: config for config in get_args(AnyObjective)
}
"""Every objective's settings by its name."""
