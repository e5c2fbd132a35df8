"""Settings of IS-BERT's objective."""

from __future__ import annotations

from typing import ClassVar, Literal

from models.objectives.settings import ObjectiveSettings


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
