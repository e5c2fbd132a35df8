"""Settings of distillation."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from bsl.models.errors import TrainingError
from bsl.models.objectives.settings import VectorSettings


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
        """See `VectorSettings.compares_vectors`."""
        return self.loss == "vectors" or self.queue > 0 or self.vectors_weight > 0

    def check_sentences(self, count: int) -> None:
        """Refuse a queue that cannot be filled with vectors of different sentences."""
        if self.queue > count:
            raise TrainingError(
                f"training.objective.queue is {self.queue:,}, but there are only {count:,} sentences. Set it to at "
                f"most {count // 2}, or give more sentences."
            )
