"""Settings of distillation."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from models.errors import TrainingError
from models.objectives.settings import NestedSettings


def check_places(places: int, sentences: int) -> None:
    """Refuse a queue that cannot be filled with vectors of different sentences.

    Raises:
        TrainingError: With both numbers.
    """
    if places > sentences:
        raise TrainingError(
            f"a queue of {places:,} places and {sentences:,} sentences with vectors, expected at least as "
            f"many; set training.objective.queue to {sentences // 2:,} or less, or give more sentences"
        )


class DistilConfig(NestedSettings):
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
    """`similarities`: KL divergence of how alike a sentence is to others; `vectors`: distance to the teacher's."""
    queue: int = Field(default=0, ge=0, le=1 << 20)
    """Of `similarities`: the teacher's vectors that a sentence is compared with, the last ones seen (ConGen: 16,384 or
    65,536 by student); 0 compares within the batch, each network in its own space, so widths may differ."""
    student_temperature: float = Field(default=0.05, gt=0, le=1)
    """Of `similarities`: divides the student's cosines (ConGen: 0.05 or 0.07 by student)."""
    teacher_temperature: float = Field(default=0.05, gt=0, le=1)
    """Of `similarities`: divides the teacher's cosines (ConGen: 0.05); lower looks at the nearest sentences only."""
    distance: Literal["mse", "cosine"] = "mse"
    """Of `vectors`: mean squared error (Reimers and Gurevych) or 1 − cosine."""
    vectors_weight: float = Field(default=0.0, ge=0, le=1000)
    """Of `similarities`: weight of the distance of the vectors beside the divergence.
    Deviation: 0 is published."""
    projection: Literal["kept", "dropped"] = "kept"
    """What becomes of the linear layer from the student's width to the teacher's, made only where they differ and
    vectors are compared across: `kept` in the encoder, whose vectors then are as wide as the teacher's and lie in its
    space (ConGen), or `dropped` after training."""
    projection_start: Literal["fitted", "random"] = "fitted"
    """That layer's first weights: ridge regression of the teacher's vectors on the student's, over a sample of the
    pairs, so that training starts near the teacher, or `random` (ConGen). Deviation: `fitted`."""
    activation: Literal["none", "tanh"] = "none"
    """Behind that layer (ConGen: tanh)."""
    views: Literal["both", "first"] = "both"
    """Which views the student reads; all are held against the teacher's vector of the sentence they were made from.
    `first` where the second is the same sentence again."""

    @property
    def compares_vectors(self) -> bool:
        """Whether the student's vectors are compared with the teacher's, so that their widths must be equal."""
        return self.loss == "vectors" or self.queue > 0 or self.vectors_weight > 0
