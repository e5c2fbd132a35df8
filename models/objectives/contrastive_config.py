"""Settings of the objectives whose negatives are the rest of the batch."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from models.objectives.settings import NestedSettings


class ContrastiveConfig(NestedSettings):
    """The paper's contrastive comparison (§4.4, Table 7): other sentences of the batch are pushed away; no target."""

    title: ClassVar[str] = "contrastive training"
    citation: ClassVar[str] = (
        "Chen, Kornblith, Norouzi and Hinton, 2020. A Simple Framework for Contrastive Learning of Visual "
        "Representations. ICML."
    )

    name: Literal["contrastive"] = "contrastive"
    temperature: float = Field(default=0.05, gt=0, le=1)
    """Divides the cosines. The paper does not give its value; SimCSE's is taken."""
    anchor_weight: float = Field(default=0.0, ge=0, le=100)
    """Weight of a term that holds the encoder to what it was before training: how alike a batch's sentences are to each
    other (distillation from itself).
    Deviation: 0 is published; above 0 less is learnt, and less forgotten."""


class SimCSEConfig(NestedSettings):
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
