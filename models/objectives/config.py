"""Settings of every objective; `name` selects the objective.

They are apart from the objectives because the command checks settings without importing torch. `AnyObjective` is the
only list of objectives; the settings name the class of their objective.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self, get_args

from pydantic import BeforeValidator, Field, model_validator

from bsl.models.errors import TrainingError
from bsl.models.objectives.settings import ObjectiveSettings, VectorSettings
from bsl.storage.record import named

if TYPE_CHECKING:
    from bsl.models.objectives.columns import Column


class BSLConfig(VectorSettings):
    """BSL as published (paper section 3, Table 8); the defaults are the paper's."""

    title: ClassVar[str] = "BSL"
    citation: ClassVar[str] = (
        "Zhang, He, Liu, Bing and Li, 2021. Bootstrapped Unsupervised Sentence Representation Learning. ACL."
    )

    removed: ClassVar[Mapping[str, object]] = {
        "target_contrastive_weight": 0.0,
        "queue": 0,
        "ranking": "listnet",
        "ranking_weight": 0.0,
        "ranking_temperature": 0.05,
        "ranking_target_temperature": 0.025,
    }
    objective = "bsl:BSL"

    name: Literal["bsl"] = "bsl"
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
    loss_scale: Literal["paper", "released"] = "paper"
    """`paper`: equation 2, in [-1, 1]; `released`: 4 + 4 times that, in [0, 8]. Without a contrastive term, the scale
    matters through clipping and Adam's ε only. The term is added to the scaled loss."""
    contrastive_weight: float = Field(default=0.0, ge=0, le=10)
    """Weight of an in-batch contrastive term added to the loss.
    Deviation: 0 is published; above 0 the other pairs of the batch serve as negatives (InfoNCE, both directions)."""
    temperature: float = Field(default=0.05, gt=0, le=1)
    """Temperature of the contrastive term; used where its weight is above 0 (SimCSE: 0.05)."""

    @property
    def label(self) -> str:
        """Name in tables, with the term that the paper's method does not have."""
        return f"{self.title} + in-batch negatives" if self.contrastive_weight > 0 else self.title

    def collapse_advice(self) -> str:
        """See `ObjectiveSettings.collapse_advice`."""
        if self.target_norm == "none":
            return (
                "Set training.objective.target_norm to 'standardize' or 'center', so that the target has no constant "
                "part"
            )
        if self.lacks_negatives:
            return "Set training.objective.contrastive_weight to 0.1, so that in-batch negatives keep vectors apart"
        return ""

    @property
    def lacks_negatives(self) -> bool:
        """See `ObjectiveSettings.lacks_negatives`."""
        return self.contrastive_weight == 0


class ContrastiveConfig(VectorSettings):
    """Settings of the paper's contrastive baseline (section 4.4, Table 7)."""

    title: ClassVar[str] = "contrastive training"
    citation: ClassVar[str] = (
        "Chen, Kornblith, Norouzi and Hinton, 2020. A Simple Framework for Contrastive Learning of Visual "
        "Representations. ICML."
    )
    objective = "contrastive:Contrastive"

    name: Literal["contrastive"] = "contrastive"
    temperature: float = Field(default=0.05, gt=0, le=1)
    """Divides the cosines. The paper does not give its value; the default is SimCSE's."""
    anchor_weight: float = Field(default=0.0, ge=0, le=100)
    """Weight of a term that penalises changes of a batch's similarities from those of the original encoder
    (self-distillation). Deviation: 0 is published; above 0 the encoder learns less and forgets less."""


class SimCSEConfig(VectorSettings):
    """Unsupervised SimCSE (Gao et al., 2021): the first view twice under different dropout; view 2 is not used.

    The encoder must have dropout; see `encoder.dropout`.
    """

    title: ClassVar[str] = "SimCSE"
    citation: ClassVar[str] = (
        "Gao, Yao and Chen, 2021. SimCSE: Simple Contrastive Learning of Sentence Embeddings. EMNLP."
    )
    objective = "contrastive:SimCSE"

    name: Literal["simcse"] = "simcse"
    temperature: float = Field(default=0.05, gt=0, le=1)
    """Divides the cosines (published: 0.05)."""
    head: Literal["mlp", "none"] = "mlp"
    """`mlp`: a linear layer and tanh above the encoder in training only, as published for [CLS]; `none`: no head."""


class DistilConfig(VectorSettings):
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
    objective = "distillation:Distil"
    needs = frozenset({"sentence_id"})

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

    def check_sentences(self, count: int) -> None:
        """Refuse a queue that cannot be filled with vectors of different sentences."""
        if self.queue > count:
            raise TrainingError(
                f"training.objective.queue is {self.queue:,}, but there are only {count:,} sentences. Set it to at "
                f"most {count // 2}, or give more sentences."
            )


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


class RegressionConfig(VectorSettings):
    """Mean squared error of the cosine against the pair's score (SBERT section 3); needs pairs with scores."""

    title: ClassVar[str] = "cosine regression"
    citation: ClassVar[str] = _SBERT
    objective = "supervised:Regression"
    needs = frozenset({"score"})

    name: Literal["regression"] = "regression"
    anchor_weight: float = Field(default=0.0, ge=0, le=100)
    """Weight of a term that penalises the distance of vectors from those of the original encoder, 1 − cosine. Above 0,
    a pair may lack a score: its loss is that distance alone (rehearsal). Deviation: 0 is published."""

    @property
    def nullable(self) -> frozenset[Column]:
        """The score, if pairs without it are rehearsed."""
        return frozenset({"score"} if self.anchor_weight > 0 else ())


class SoftmaxConfig(ClassifierSettings):
    """Classification of pairs by their two vectors (SBERT section 3, "Classification Objective Function")."""

    title: ClassVar[str] = "SBERT's softmax"
    citation: ClassVar[str] = _SBERT
    objective = "supervised:Softmax"
    needs = frozenset({"label"})

    name: Literal["softmax"] = "softmax"


class SCLConfig(ClassifierSettings, VectorSettings):
    """Supervised contrastive learning combined with classification (Liao, 2021, section 3).

    Rows with the same premise should share a batch: set `training.order` to `groups`, or to `given` with unshuffled
    pairs.
    """

    title: ClassVar[str] = "supervised contrastive learning"
    citation: ClassVar[str] = "Liao, 2021. Sentence Embeddings using Supervised Contrastive Learning. arXiv:2106.04791."
    objective = "scl:SCL"
    needs = frozenset({"label", "group"})

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
    objective = "supervised:CrossRegression"
    needs = frozenset({"score"})
    reads_pairs = True

    name: Literal["cross-regression"] = "cross-regression"
    loss: Literal["bce", "mse"] = "bce"
    """Loss between the score and the sigmoid of the [CLS] token's value: cross-entropy (UKP's code for AFS) or squared
    error. SBERT's paper does not specify it."""


class CrossSoftmaxConfig(ObjectiveSettings):
    """A cross-encoder that classifies pairs: first training stage of row BERT-NLI-STSb (SBERT section 4.2)."""

    title: ClassVar[str] = "cross-encoder softmax"
    citation: ClassVar[str] = _BERT
    objective = "supervised:CrossSoftmax"
    needs = frozenset({"label"})
    reads_pairs = True

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
    objective = "language_modeling.masked_lm:MaskedLM"

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
    objective = "language_modeling.tsdae:TSDAE"

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
    objective = "isbert:ISBERT"

    name: Literal["isbert"] = "isbert"


AnyObjective = (
    BSLConfig
    | ContrastiveConfig
    | SimCSEConfig
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
