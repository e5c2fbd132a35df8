"""Settings of the objectives that predict words."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from bsl.models.objectives.settings import ObjectiveSettings


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
