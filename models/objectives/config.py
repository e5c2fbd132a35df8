"""Settings of every objective; `name` selects the objective."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self, get_args

from pydantic import BeforeValidator, Field, model_validator

from models.errors import TrainingError
from storage.record import Record, named

if TYPE_CHECKING:
    from collections.abc import Mapping


class ObjectiveSettings(Record):
    """Settings of one objective, and its name and source in reports."""

    title: ClassVar[str]
    """Name in reports."""
    citation: ClassVar[str]
    """Source in reports."""

    name: str

    @property
    def label(self) -> str:
        """Name in tables; it may depend on the settings."""
        return self.title


class MatryoshkaConfig(ObjectiveSettings):
    """Settings of an objective that `Matryoshka` can wrap."""

    dims: tuple[Annotated[int, Field(ge=2)], ...] = ()
    """Deviation: for each d, add the loss of the vectors' first d dimensions, so that vectors can be truncated to d
    dimensions (Kusupati et al., 2022). () uses full vectors only, as published."""

    @model_validator(mode="after")
    def _are_of_one_space(self) -> Self:
        if len(set(self.dims)) < len(self.dims):
            raise ValueError(f"dims {list(self.dims)}: a number occurs twice. Give each number of dimensions once.")
        queue: int = getattr(self, "queue", 0)
        vectors: bool = getattr(self, "compares_vectors", False)
        if self.dims and (queue or vectors):
            raise ValueError(
                f"dims {list(self.dims)} cannot be combined with a queue or a teacher's vectors, whose first "
                "dimensions differ from the encoder's. Set queue=0 and loss=similarities, or remove dims."
            )
        return self


class TwoBranchConfig(MatryoshkaConfig):
    """Settings of the online network, predictor and momentum target, which BSL, VICReg and Barlow Twins share."""

    predictor: Literal["paper", "released", "released-2021"] = "paper"
    """`paper`: one d→kd→kd→d block (§4); `released`: three chained d→kd→kd→d blocks, normalised after the first
    linear of each only (BYOLoss.py, where kd is 10d); `released-2021`: the same before the code's correction of
    2021-10-22 (ef8cf63), where view 2 passed the second block twice and the third never."""
    k: int = Field(default=8, ge=1, le=64)
    """Hidden width of the predictor in multiples of the encoder's width d (paper: 8; released code: 10)."""
    norm: Literal["batch", "layer", "none"] = "batch"
    """Normalisation inside the predictor. `batch` is as published, with statistics per view.
    Deviation: `layer` and `none` need no statistics across rows; the author reports little loss of quality."""
    momentum: float = Field(default=0.999, ge=0, le=1)
    """δ of equation 4: weight of the old target at each step; 0 copies the online encoder, 1 freezes the target."""
    momentum_schedule: Literal["constant", "cosine"] = "constant"
    """`constant` as published. Deviation: `cosine` raises δ to 1 over the run (BYOL, section 3.2)."""
    target_dropout: bool = False
    """Whether the target runs with dropout. The paper does not specify it; the released code has it on. The default is
    off, which was better on `bert-mini` with both seeds (FIDELITY.md)."""
    target_norm: Literal["none", "center", "standardize"] = "none"
    """Statistics removed from the target's vectors before the loss; `none` as published.
    Deviation: `center` subtracts a running mean, `standardize` also divides by a running standard deviation. Vectors of
    a small masked language model share a mean direction, so that a constant prediction already has cosine 0.97."""
    target_norm_momentum: float = Field(default=0.9, ge=0, lt=1)
    """Weight of the old running statistics at each step; used by `center` and `standardize` only."""


class BSLConfig(TwoBranchConfig):
    """BSL as published (paper section 3, Table 8); the defaults are the paper's."""

    title: ClassVar[str] = "BSL"
    citation: ClassVar[str] = (
        "Zhang, He, Liu, Bing and Li, 2021. Bootstrapped Unsupervised Sentence Representation Learning. ACL."
    )

    name: Literal["bsl"] = "bsl"
    loss_scale: Literal["paper", "released"] = "paper"
    """`paper`: equation 2, in [-1, 1]; `released`: 4 + 4 times that, in [0, 8]. Without further terms, the scale
    matters through clipping and Adam's ε only. Further terms are added to the scaled loss."""
    contrastive_weight: float = Field(default=0.0, ge=0, le=10)
    """Weight of an in-batch contrastive term added to the loss.
    Deviation: 0 is published; above 0 the other pairs of the batch serve as negatives (InfoNCE, both directions)."""
    temperature: float = Field(default=0.05, gt=0, le=1)
    """Temperature of both contrastive terms; used where a weight is above 0 (SimCSE: 0.05; MoCo: 0.07)."""
    target_contrastive_weight: float = Field(default=0.0, ge=0, le=10)
    """Weight of a contrastive term between prediction and target, added to the loss (MoCo v3, Chen et al., 2021).
    Deviation: 0 is published; above 0 a prediction must find its target vector among the batch's and the queue's."""
    queue: int = Field(default=0, ge=0, le=1 << 20)
    """Target vectors of the latest batches, as further negatives of that term (MoCo, He et al., 2020: 65,536); 0 uses
    this batch's only."""
    ranking: Literal["listnet", "listmle", "js"] = "listnet"
    """Loss between the online encoder's and the target's lists of similarities (RankCSE, Liu et al., 2023, section 3):
    `listnet` is the cross-entropy of the top-one probabilities, `listmle` the negative log-likelihood of the target's
    order, `js` the Jensen-Shannon divergence."""
    ranking_weight: float = Field(default=0.0, ge=0, le=10)
    """Weight of the ranking term added to the loss.
    Deviation: 0 is published; above 0 the online encoder learns the target's order of a batch's sentences."""
    ranking_temperature: float = Field(default=0.05, gt=0, le=1)
    """Divides the online encoder's cosines in the ranking term (RankCSE: τ2 = 0.05)."""
    ranking_target_temperature: float = Field(default=0.025, gt=0, le=1)
    """Divides the target's cosines in the ranking term (RankCSE: half of τ2); no effect on `listmle`."""

    @model_validator(mode="after")
    def _the_queue_is_used(self) -> Self:
        if self.queue > 0 and self.target_contrastive_weight == 0:
            raise ValueError(
                f"queue={self.queue} has no effect, because target_contrastive_weight is 0. Set "
                "target_contrastive_weight, for example to 0.1, or remove queue."
            )
        return self

    @property
    def label(self) -> str:
        """Name in tables, with the terms that the paper's method does not have."""
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


class ContrastiveConfig(MatryoshkaConfig):
    """Settings of the paper's contrastive baseline (section 4.4, Table 7)."""

    title: ClassVar[str] = "contrastive training"
    citation: ClassVar[str] = (
        "Chen, Kornblith, Norouzi and Hinton, 2020. A Simple Framework for Contrastive Learning of Visual "
        "Representations. ICML."
    )

    name: Literal["contrastive"] = "contrastive"
    temperature: float = Field(default=0.05, gt=0, le=1)
    """Divides the cosines. The paper does not give its value; the default is SimCSE's."""
    anchor_weight: float = Field(default=0.0, ge=0, le=100)
    """Weight of a term that penalises changes of a batch's similarities from those of the original encoder
    (self-distillation). Deviation: 0 is published; above 0 the encoder learns less and forgets less."""


class SimCSEConfig(MatryoshkaConfig):
    """Unsupervised SimCSE (Gao et al., 2021): the first view twice under different dropout; view 2 is not used.

    The encoder must have dropout; see `encoder.dropout`.
    """

    title: ClassVar[str] = "SimCSE"
    citation: ClassVar[str] = (
        "Gao, Yao and Chen, 2021. SimCSE: Simple Contrastive Learning of Sentence Embeddings. EMNLP."
    )

    name: Literal["simcse"] = "simcse"
    temperature: float = Field(default=0.05, gt=0, le=1)
    """Divides the cosines (published: 0.05)."""
    head: Literal["mlp", "none"] = "mlp"
    """`mlp`: a linear layer and tanh above the encoder in training only, as published for [CLS]; `none`: no head."""


def check_places(places: int, sentences: int) -> None:
    """Refuse a queue that cannot be filled with vectors of different sentences.

    Raises:
        TrainingError: The queue has more places than there are sentences.
    """
    if places > sentences:
        raise TrainingError(
            f"training.objective.queue is {places:,}, but there are only {sentences:,} sentences. Set it to at most "
            f"{sentences // 2}, or give more sentences."
        )


class DistilConfig(MatryoshkaConfig):
    """Learning from a teacher's vectors of the same sentences.

    `similarities` is ConGen (Limkonchotiwat et al., 2022), `vectors` multilingual knowledge distillation (Reimers and
    Gurevych, 2020).
    """

    title: ClassVar[str] = "distillation"
    citation: ClassVar[str] = (
        "Limkonchotiwat et al., 2022. ConGen: Unsupervised Control and Generalization Distillation for Sentence "
        "Representation. Findings of EMNLP. Reimers and Gurevych, 2020. Making Monolingual Sentence Embeddings "
        "Multilingual using Knowledge Distillation. EMNLP."
    )

    name: Literal["distil"] = "distil"
    loss: Literal["similarities", "vectors"] = "similarities"
    """`similarities`: KL divergence between the teacher's and the student's similarities of a sentence to others;
    `vectors`: distance between their vectors of a sentence."""
    queue: int = Field(default=0, ge=0, le=1 << 20)
    """For `similarities`: number of the teacher's latest vectors that a sentence is compared with (ConGen: 16,384 or
    65,536 by student); 0 compares within the batch, each network in its own space, so widths may differ."""
    student_temperature: float = Field(default=0.05, gt=0, le=1)
    """For `similarities`: divides the student's cosines (ConGen: 0.05 or 0.07 by student)."""
    teacher_temperature: float = Field(default=0.05, gt=0, le=1)
    """For `similarities`: divides the teacher's cosines (ConGen: 0.05); low values emphasise the nearest sentences."""
    distance: Literal["mse", "cosine"] = "mse"
    """Distance of vectors: mean squared error (Reimers and Gurevych) or 1 − cosine."""
    vectors_weight: float = Field(default=0.0, ge=0, le=1000)
    """For `similarities`: weight of the vector distance added to the divergence.
    Deviation: 0 is published."""
    projection: Literal["kept", "dropped"] = "kept"
    """Linear layer from the student's width to the teacher's, added where vectors of different widths are compared.
    `kept`: part of the encoder, whose vectors are then in the teacher's space (ConGen); `dropped`: discarded after
    training."""
    projection_start: Literal["fitted", "random"] = "fitted"
    """Initial weights of that layer: `random` (ConGen). Deviation: `fitted` by ridge regression of the teacher's
    vectors on the student's, over a sample of the pairs."""
    activation: Literal["none", "tanh"] = "none"
    """Activation after that layer (ConGen: tanh)."""
    views: Literal["both", "first"] = "both"
    """Views that the student reads, each compared with the teacher's vector of the pair's sentence; `first` where the
    second view is the same sentence."""

    @property
    def compares_vectors(self) -> bool:
        """Whether the student's vectors are compared with the teacher's, so that their widths must be equal."""
        return self.loss == "vectors" or self.queue > 0 or self.vectors_weight > 0


Feature = Literal["u", "v", "|u-v|", "u*v"]
_SBERT = "Reimers and Gurevych, 2019. Sentence-BERT: Sentence Embeddings using Siamese BERT-Networks. EMNLP."
_BERT = (
    "Devlin, Chang, Lee and Toutanova, 2019. BERT: Pre-training of Deep Bidirectional Transformers for Language "
    "Understanding. NAACL."
)


class ClassifierSettings(ObjectiveSettings):
    """Settings of a pair classifier on top of the encoder, discarded after training; needs pairs with labels."""

    features: tuple[Feature, ...] = Field(default=("u", "v", "|u-v|"), min_length=1)
    """Features of a pair's vectors u and v, concatenated (SBERT section 6 compares them)."""
    head: Literal["linear", "two-layer"] = "linear"
    """`linear`: one layer (SBERT section 3); `two-layer`: a layer before it, half as wide as its input and without a
    nonlinearity (SCL's code)."""
    classes: int = Field(default=3, ge=2, le=127)
    """Number of classes; labels are 0 to classes − 1 (NLI: entailment, neutral, contradiction)."""

    @model_validator(mode="after")
    def _features_differ(self) -> Self:
        if len(set(self.features)) < len(self.features):
            raise ValueError(f"features {', '.join(self.features)}: a feature occurs twice. Give each feature once.")
        return self


class RegressionConfig(MatryoshkaConfig):
    """Mean squared error of the cosine against the pair's score (SBERT section 3); needs pairs with scores."""

    title: ClassVar[str] = "cosine regression"
    citation: ClassVar[str] = _SBERT

    name: Literal["regression"] = "regression"
    anchor_weight: float = Field(default=0.0, ge=0, le=100)
    """Weight of a term that penalises the distance of vectors from those of the original encoder, 1 − cosine. Above 0,
    a pair may lack a score: its loss is that distance alone (rehearsal). Deviation: 0 is published."""


class SoftmaxConfig(ClassifierSettings):
    """Classification of pairs by their two vectors (SBERT section 3, "Classification Objective Function")."""

    title: ClassVar[str] = "SBERT's softmax"
    citation: ClassVar[str] = _SBERT

    name: Literal["softmax"] = "softmax"


class SCLConfig(ClassifierSettings, MatryoshkaConfig):
    """Supervised contrastive learning combined with classification (Liao, 2021, section 3).

    Rows with the same premise should share a batch: set `training.order` to `groups`, or to `given` with unshuffled
    pairs.
    """

    title: ClassVar[str] = "supervised contrastive learning"
    citation: ClassVar[str] = "Liao, 2021. Sentence Embeddings using Supervised Contrastive Learning. arXiv:2106.04791."

    name: Literal["scl"] = "scl"
    head: Literal["linear", "two-layer"] = "two-layer"
    """`two-layer` is as published: its first layer is half as wide as its input, without a nonlinearity."""
    weight: float = Field(default=0.3, ge=0, le=1)
    """λ of equation 3: the contrastive share of the loss; the rest is cross-entropy (best on STS: 0.3; the code's
    default 0.5)."""
    temperature: float = Field(default=1.0, gt=0, le=100)
    """τ of equation 2 (best: 1.0)."""
    similarity: Literal["dot", "cosine"] = "dot"
    """Similarity that τ divides: the dot product as published. Deviation: `cosine`, which does not depend on the
    encoder's scale."""
    positives: int | None = Field(default=None, ge=1)
    """Positives per anchor: its own hypothesis and others drawn at random; None uses all (the code's `pos_num` -1)."""
    negatives: int | None = Field(default=None, ge=1)
    """Negatives per anchor, drawn at random; None uses all (the code's `neg_num` -1). The code also uses all of them at
    any number above 0, so its setting "3n" equals "all n"."""
    control: Literal["none", "augment"] = "none"
    """`augment`: the paper's control. Pairs of an anchor with its positives and negatives are added to the
    cross-entropy, without a contrastive term. Neither paper nor code gives the class of a pair with another premise's
    hypothesis; here it is contradiction."""

    @property
    def label(self) -> str:
        """Name in tables; the control has its own, because it is not contrastive."""
        return "SCL's augmentation control" if self.control == "augment" else self.title


class CrossRegressionConfig(ObjectiveSettings):
    """A cross-encoder that scores a pair read as one text (SBERT section 4.2, rows BERT-STSb and BERT-AFS)."""

    title: ClassVar[str] = "cross-encoder regression"
    citation: ClassVar[str] = _BERT

    name: Literal["cross-regression"] = "cross-regression"
    loss: Literal["bce", "mse"] = "bce"
    """Loss between the score and the sigmoid of the [CLS] token's value: cross-entropy (UKP's code for AFS) or squared
    error. SBERT's paper does not specify it."""


class CrossSoftmaxConfig(ObjectiveSettings):
    """A cross-encoder that classifies pairs: first training stage of row BERT-NLI-STSb (SBERT section 4.2)."""

    title: ClassVar[str] = "cross-encoder softmax"
    citation: ClassVar[str] = _BERT

    name: Literal["cross-softmax"] = "cross-softmax"
    classes: int = Field(default=3, ge=2, le=127)
    """Number of classes; labels are 0 to classes − 1."""


class MaskedLMConfig(ObjectiveSettings):
    """Masked language modelling, as BERT was trained, continued on the corpus; only first views are read.

    The papers' baseline "BERT-mlm". The loss does not use sentence vectors, so select the last step (`select`).
    """

    title: ClassVar[str] = "masked language modelling"
    citation: ClassVar[str] = (
        "Gururangan et al., 2020. Don't Stop Pretraining: Adapt Language Models to Domains and Tasks. ACL."
    )

    name: Literal["masked-lm"] = "masked-lm"
    share: float = Field(default=0.15, gt=0, lt=1)
    """Share of the tokens to predict (BERT: 15 %, of which 80 % are masked, 10 % replaced, 10 % unchanged)."""


class TSDAEConfig(ObjectiveSettings):
    """TSDAE: reconstruct the second view from the vector of the first, the same sentence with words deleted.

    The decoder runs the encoder's own layers causally, so all its weights are tied except its attention to the vector.
    """

    title: ClassVar[str] = "TSDAE"
    citation: ClassVar[str] = (
        "Wang, Reimers and Gurevych, 2021. TSDAE: Using Transformer-based Sequential Denoising Auto-Encoder for "
        "Unsupervised Sentence Embedding Learning. Findings of EMNLP."
    )

    name: Literal["tsdae"] = "tsdae"


class ISBERTConfig(ObjectiveSettings):
    """IS-BERT's mutual information between a sentence and its tokens (section 3.3); view 2 is not used.

    The score is the dot product, as released. Its convolutions are the encoder's: see `encoder.cnn`.
    """

    title: ClassVar[str] = "IS-BERT"
    citation: ClassVar[str] = (
        "Zhang, He, Liu, Lim and Bing, 2020. An Unsupervised Sentence Embedding Method by Mutual Information "
        "Maximization. EMNLP."
    )

    name: Literal["isbert"] = "isbert"


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
"""Name of each objective → class of its settings."""
