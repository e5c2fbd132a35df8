"""Settings of the objectives that guess words: the sentence's vector is a by-product."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from models.objectives.settings import ObjectiveSettings


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
