"""Settings of the objectives that learn from annotated pairs: classes of NLI, or scores."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from models.objectives.settings import NestedSettings, ObjectiveSettings

Feature = Literal["u", "v", "|u-v|", "u*v"]
_SBERT = "Reimers and Gurevych, 2019. Sentence-BERT: Sentence Embeddings using Siamese BERT-Networks. EMNLP."
_BERT = (
    "Devlin, Chang, Lee and Toutanova, 2019. BERT: Pre-training of Deep Bidirectional Transformers for Language "
    "Understanding. NAACL."
)


class ClassifierSettings(ObjectiveSettings):
    """A classifier of pairs above the encoder, which is dropped after training; needs pairs with labels."""

    features: tuple[Feature, ...] = Field(default=("u", "v", "|u-v|"), min_length=1)
    """What the classifier sees of a pair's vectors u and v, side by side (SBERT section 6 compares the choices)."""
    head: Literal["linear", "two-layer"] = "linear"
    """`linear`: one layer (SBERT section 3); `two-layer`: a second one between, half as wide as its input and without a
    nonlinearity (SCL's code)."""
    classes: int = Field(default=3, ge=2, le=127)
    """Classes of pairs; labels run from 0 to one less (NLI: entailment, neutral, contradiction)."""

    @model_validator(mode="after")
    def _features_differ(self) -> Self:
        if len(set(self.features)) < len(self.features):
            raise ValueError(f"features {', '.join(self.features)}: one stands there twice; name each once")
        return self


class RegressionConfig(NestedSettings):
    """Mean squared error of the cosine against the pair's score (SBERT section 3); needs pairs with scores."""

    title: ClassVar[str] = "cosine regression"
    citation: ClassVar[str] = _SBERT

    name: Literal["regression"] = "regression"


class SoftmaxConfig(ClassifierSettings):
    """Classification of pairs by their two vectors (SBERT section 3, "Classification Objective Function")."""

    title: ClassVar[str] = "SBERT's softmax"
    citation: ClassVar[str] = _SBERT

    name: Literal["softmax"] = "softmax"


class SCLConfig(ClassifierSettings, NestedSettings):
    """Supervised contrastive learning beside classification (its section 3).

    Rows of one premise should share a batch: `training.order` `groups`, or `given` with unshuffled pairs.
    """

    title: ClassVar[str] = "supervised contrastive learning"
    citation: ClassVar[str] = "Liao, 2021. Sentence Embeddings using Supervised Contrastive Learning. arXiv:2106.04791."

    name: Literal["scl"] = "scl"
    head: Literal["linear", "two-layer"] = "two-layer"
    """As published, `two-layer`: a layer half as wide as its input between, without a nonlinearity."""
    weight: float = Field(default=0.3, ge=0, le=1)
    """λ of equation 3: the contrastive share of the loss; the rest is cross-entropy (best on STS: 0.3; the code's
    default 0.5)."""
    temperature: float = Field(default=1.0, gt=0, le=100)
    """τ of equation 2 (best: 1.0)."""
    similarity: Literal["dot", "cosine"] = "dot"
    """What τ divides: the dot product as published. Deviation: `cosine`, which does not depend on the encoder's
    scale."""
    positives: int | None = Field(default=None, ge=1)
    """Positives of an anchor, its own hypothesis among them, the others drawn; None takes all (the code's `pos_num`
    -1)."""
    negatives: int | None = Field(default=None, ge=1)
    """Negatives of an anchor, drawn; None takes all (the code's `neg_num` -1). The code draws all of them at any number
    above 0 too, so its 3n is its all n."""
    control: Literal["none", "augment"] = "none"
    """`augment`: the paper's control; anchors are classified beside their positives and negatives as further pairs of
    the cross-entropy, and nothing is contrasted. Neither paper nor code says under which class a hypothesis of another
    premise stands: contradiction here."""

    @property
    def label(self) -> str:
        """The control is no contrastive learning."""
        return "SCL's augmentation control" if self.control == "augment" else self.title


class CrossRegressionConfig(ObjectiveSettings):
    """A cross-encoder's score of a pair that it reads as one text (SBERT section 4.2, rows BERT-STSb and BERT-AFS)."""

    title: ClassVar[str] = "cross-encoder regression"
    citation: ClassVar[str] = _BERT

    name: Literal["cross-regression"] = "cross-regression"
    loss: Literal["bce", "mse"] = "bce"
    """Of the sigmoid of the [CLS] token's value against the score: cross-entropy (UKP's code for AFS) or squared
    error. SBERT's paper says neither."""


class CrossSoftmaxConfig(ObjectiveSettings):
    """A cross-encoder's classes of pairs: what row BERT-NLI-STSb is trained by before STS-B (SBERT section 4.2)."""

    title: ClassVar[str] = "cross-encoder softmax"
    citation: ClassVar[str] = _BERT

    name: Literal["cross-softmax"] = "cross-softmax"
    classes: int = Field(default=3, ge=2, le=127)
    """Classes of pairs; labels run from 0 to one less."""
