"""What decides a run: the stages' own configurations, side by side."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, model_validator

from models.encoder.config import EncoderConfig, WordsConfig
from models.evaluation.config import EvaluationConfig
from models.training.config import TrainingConfig
from models.transforms.config import TransformConfig
from models.views.config import AugmentConfig
from models.views.pairs import PairConfig
from tasks.corpus.config import IngestConfig


class Phase(BaseModel):
    """One training: which pairs, and what is minimised on them."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    pairs: PairConfig
    """Which two views make a training pair."""
    training: TrainingConfig
    """The objective, its optimizer and schedule."""
    teacher: EncoderConfig | None = None
    """Whose vectors of the corpus the objective learns from, where it needs a teacher; as `encoder.model`, or vectors
    by `embeddings/<key>` of the store, which tasks.embedding.python_encoders makes with any Python object."""
    more_teachers: tuple[EncoderConfig, ...] = ()
    """Further teachers: two sentences are then as alike as all teachers say on average."""

    @property
    def teachers(self) -> tuple[EncoderConfig, ...]:
        """All of them, in order."""
        return (*filter(None, [self.teacher]), *self.more_teachers)


class RunSettings(BaseModel):
    """Everything that decides the result of a run."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    ingest: IngestConfig
    """Which sentences."""
    augment: AugmentConfig
    """Which views of each sentence."""
    pairs: PairConfig
    """Which two views make a training pair."""
    encoder: EncoderConfig
    """Where online and target network start."""
    words: WordsConfig = WordsConfig()
    """How sentences are cut where the encoder is a file of word vectors."""
    earlier: tuple[Phase, ...] = ()
    """Trainings before the last, each from what the one before it left."""
    teacher: EncoderConfig | None = None
    """Whose vectors of the corpus the objective learns from, where it needs a teacher; as `encoder.model`, or vectors
    by `embeddings/<key>` of the store, which tasks.embedding.python_encoders makes with any Python object."""
    more_teachers: tuple[EncoderConfig, ...] = ()
    """Further teachers: two sentences are then as alike as all teachers say on average."""
    training: TrainingConfig | None
    """The objective of the last training, its optimizer and schedule; None scores the encoder as it is."""
    evaluation: EvaluationConfig
    """Which sets the encoders are scored on."""
    transform: TransformConfig | None = None
    """A post-hoc transform, fitted without labels; what it makes of the encoders' vectors is scored beside them."""
    transform_on: Literal["corpus", "targets"] = "corpus"
    """Whose vectors it is fitted on: the corpus's, once for all sets, or for each set anew those of all sentences of
    its own data set, every split ("target" of Li et al., 2020, and Su et al., 2021)."""

    @property
    def phases(self) -> tuple[Phase, ...]:
        """All trainings, in order."""
        if self.training is None:
            return ()
        last = Phase(pairs=self.pairs, training=self.training, teacher=self.teacher, more_teachers=self.more_teachers)
        return (*self.earlier, last)

    @property
    def needs_labels(self) -> bool:
        """Whether views or pairs are made from labelled pairs."""
        phases = self.phases
        return bool(phases) and (self.augment.needs_labels or any(phase.pairs.labelled for phase in phases))

    @property
    def scored(self) -> tuple[str, ...]:
        """Scored sets that trainings take their pairs from."""
        return tuple(phase.pairs.scored for phase in self.phases if phase.pairs.scored is not None)

    @property
    def systems(self) -> tuple[str, ...]:
        """What tables call the encoder at the start and after each training."""
        if not self.phases:
            return (f"{self.encoder.short_name} ({self.encoder.pooling})",)
        labels = [phase.training.objective.label for phase in self.phases]
        trained = (f"after {', then '.join(labels[: number + 1])}" for number in range(len(labels)))
        return (f"before {labels[0]} ({self.encoder.pooling})", *trained)

    @property
    def result(self) -> str:
        """What tables call what the run is for: the last system, after the transform if there is one."""
        return self.systems[-1] + self.after_transform

    @property
    def after_transform(self) -> str:
        """What the transform adds to a system's name; empty without one."""
        fitted = {"corpus": "corpus", "targets": "target"}[self.transform_on]
        return f" + {self.transform.name} ({fitted})" if self.transform else ""

    @model_validator(mode="after")
    def _ends_in_training(self) -> Self:
        if self.earlier and self.training is None:
            raise ValueError("earlier trainings without a last one; move the last of `earlier` to `training`")
        return self

    @model_validator(mode="after")
    def _has_a_key(self) -> Self:
        """Keys are made of JSON in UTF-8, which has neither infinite numbers nor half characters."""
        fault = next(_without_form(self.model_dump(), ""), None)
        if fault is not None:
            raise ValueError(f"{fault}; give a finite number or plain text, or null where a limit is to be off")
        return self


def _without_form(value: object, place: str) -> Iterator[str]:
    """The fields below a value that no JSON text holds."""
    if isinstance(value, float) and not math.isfinite(value):
        yield f"{place} is not a finite number"
    if isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value):
        yield f"{place} is not Unicode text"
    inner = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list | tuple) else ()
    for name, part in inner:
        yield from _without_form(part, f"{place}.{name}".lstrip("."))
