"""Settings of the objectives over annotated pairs: supervised.py and scl.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from bsl.models.objectives.settings import ObjectiveSettings, VectorSettings
from bsl.storage.record import AddedAs

if TYPE_CHECKING:
    from bsl.models.objectives.columns import Column

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

    each_text_once: Annotated[bool, AddedAs(False)] = False
    """Whether a text that occurs several times in a batch is encoded once, with one dropout mask. Few labelled texts
    then need less time (docs/research-log.md). By default it is encoded each time, as in sentence-transformers."""

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
