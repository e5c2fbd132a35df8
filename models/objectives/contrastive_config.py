"""Settings of the objectives whose negatives are other sentences of the batch: contrastive.py and isbert.py."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from bsl.models.objectives.settings import ObjectiveSettings, VectorSettings


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
