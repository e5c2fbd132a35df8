"""Settings of a run: the configurations of all stages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, Self

from pydantic import model_validator

from bsl.models.encoder.config import EncoderConfig, WordsConfig
from bsl.models.evaluation.config import EvaluationConfig
from bsl.models.training.config import TrainingConfig
from bsl.models.transforms.config import TransformConfig
from bsl.models.views.config import AugmentConfig
from bsl.models.views.pairs import OWN_LABELS, PairConfig
from bsl.storage.filesystem.spelling import did_you_mean
from bsl.storage.record import Record
from bsl.tasks.corpus.config import IngestConfig


class TrainingSettings(Record):
    """Settings of one training: its pairs, its objective, its teachers."""

    pairs: PairConfig
    """The two views that make a training pair."""
    training: TrainingConfig | None
    """The objective, its optimizer and schedule; `--set training=null` trains nothing."""
    teacher: EncoderConfig | None = None
    """Teacher whose vectors of the corpus the objective learns from, if it needs one: as `encoder.model`, or vectors
    named `embeddings/<key>` in the store, which bsl.tasks.embedding.python_encoders makes with any Python object."""
    more_teachers: tuple[EncoderConfig, ...] = ()
    """Further teachers; the similarity of two sentences is then the mean over all teachers."""


class Phase(TrainingSettings):
    """One training of a run."""

    training: TrainingConfig
    """The objective, its optimizer and schedule."""

    @property
    def teachers(self) -> tuple[EncoderConfig, ...]:
        """All teachers, in order."""
        return (*filter(None, [self.teacher]), *self.more_teachers)

    def check_pairs(self, augment: AugmentConfig, path: str = "") -> None:
        """Check, before any stage, that the training will have its views, its columns and its teacher.

        Args:
            augment: The views that the run makes.
            path: Start of the paths of this training's settings, for messages.

        Raises:
            ValueError: A view does not exist, or the objective needs labels, scores or a teacher that it will not have.
        """
        pairs, objective = self.pairs, self.training.objective
        needs = objective.needs - objective.nullable
        by_group = self.training.order == "groups"
        if (by_group or needs & {"label", "group"}) and not pairs.labelled:
            setting = f"order={self.training.order}" if by_group else f"objective={objective.name}"
            raise ValueError(
                f"{path}training.{setting} needs labelled pairs. Set {path}pairs.labelled=true, and sources with "
                "labels, such as snli."
            )
        if "score" in needs and pairs.scored is None:
            raise ValueError(
                f"{path}training.objective={objective.name} needs scored pairs. Set {path}pairs.scored to a scored "
                "set, such as stsb/train."
            )
        if "sentence_id" in needs and not self.teachers:
            raise ValueError(
                f"{path}training.objective={objective.name} needs a teacher. Set {path}teacher.model to an encoder."
            )
        if not pairs.labelled and pairs.scored is None:
            _check_views(pairs, augment, f"{path}pairs.pairings")


class RunSettings(TrainingSettings):
    """All settings that decide the result of a run; those of a training are of the last one."""

    ingest: IngestConfig
    """The sentences."""
    augment: AugmentConfig
    """The views of each sentence."""
    encoder: EncoderConfig
    """The initial weights of online and target network."""
    words: WordsConfig = WordsConfig()
    """Tokenisation for an encoder made from word vectors."""
    earlier: tuple[Phase, ...] = ()
    """Earlier trainings; each starts from the result of the one before."""
    evaluation: EvaluationConfig
    """The evaluation sets."""
    transform: TransformConfig | None = None
    """A post-hoc transform, fitted without labels; its vectors are scored in addition to the encoders'."""
    transform_on: Literal["corpus", "targets"] = "corpus"
    """Sentences to fit it on. `corpus`: the corpus, once for all sets. `targets`: for each set all sentences of its own
    dataset, every split ("target" of Li et al., 2020, and Su et al., 2021)."""

    @property
    def phases(self) -> tuple[Phase, ...]:
        """All trainings, in order."""
        if self.training is None:
            return ()
        last = {name: getattr(self, name) for name in TrainingSettings.model_fields}
        return (*self.earlier, Phase(**last))

    @property
    def needs_labels(self) -> bool:
        """Whether views or pairs require labelled pairs."""
        phases = self.phases
        return bool(phases) and (self.augment.needs_labels or any(phase.pairs.labelled for phase in phases))

    @property
    def scored(self) -> tuple[str, ...]:
        """Scored sets used as training pairs, without own labels."""
        return tuple(phase.pairs.scored for phase in self.phases if phase.pairs.scored not in (None, OWN_LABELS))

    @property
    def own_labels(self) -> tuple[Phase, ...]:
        """The trainings on own labels."""
        return tuple(phase for phase in self.phases if phase.pairs.scored == OWN_LABELS)

    @property
    def selecting_dev(self) -> str | None:
        """The dev set that selects the checkpoint of a training; None if every training keeps its last step."""
        selects = any(phase.training.select != "last" for phase in self.phases)
        return self.evaluation.dev if selects else None

    @property
    def systems(self) -> tuple[str, ...]:
        """Names in tables of the encoder before training and after each training."""
        if not self.phases:
            return (f"{self.encoder.short_name} ({self.encoder.pooling})",)
        labels = [phase.training.objective.label for phase in self.phases]
        trained = (f"after {', then '.join(labels[: number + 1])}" for number in range(len(labels)))
        return (f"before {labels[0]} ({self.encoder.pooling})", *trained)

    @property
    def result(self) -> str:
        """Name in tables of the final system: the last encoder, with the transform if any."""
        return self.systems[-1] + self.after_transform

    @property
    def after_transform(self) -> str:
        """Suffix of a system's name for the transform; empty without one."""
        fitted = {"corpus": "corpus", "targets": "target"}[self.transform_on]
        return f" + {self.transform.name} ({fitted})" if self.transform else ""

    @model_validator(mode="after")
    def _ends_in_training(self) -> Self:
        if self.earlier and self.training is None:
            raise ValueError(
                "`earlier` has trainings, but `training` is null. Move the last of `earlier` to `training`."
            )
        return self

    @model_validator(mode="after")
    def _has_its_labels(self) -> Self:
        own = self.ingest.own_text
        if self.own_labels and (own is None or own.labels is None):
            raise ValueError(f"pairs.scored={OWN_LABELS} needs labels. Set ingest.own_text.labels to a file.")
        return self

    @model_validator(mode="after")
    def _reads_its_columns(self) -> Self:
        if self.ingest.own_text is None or not self.phases:
            return self
        if self.augment.given or self.needs_labels:
            setting = "augment.given" if self.augment.given else "view entail or pairs.labelled"
            raise ValueError(
                f"{setting} reads columns beside the sentences, which ingest.own_text does not read. Set "
                "ingest.own_text to null, or use other views and pairs"
            )
        return self

    @model_validator(mode="after")
    def _trainings_have_their_pairs(self) -> Self:
        for number, phase in enumerate(self.phases):
            phase.check_pairs(self.augment, f"earlier.{number}." if number < len(self.earlier) else "")
        return self

    @model_validator(mode="after")
    def _has_a_key(self) -> Self:
        """Refuse lone surrogates, which keys cannot contain (JSON in UTF-8)."""
        if path := next(_surrogates(self.model_dump(), ""), None):
            raise ValueError(f"{path} is not Unicode text. Give plain text.")
        return self


def _check_views(pairs: PairConfig, augment: AugmentConfig, path: str) -> None:
    known = augment.methods
    translated = {view.method: view.lang for view in augment.translations}
    for number, pairing in enumerate(pairs.pairings):
        for side, view, lang in ((1, pairing.view_1, pairing.lang_1), (2, pairing.view_2, pairing.lang_2)):
            if view not in known:
                raise ValueError(
                    f"{path}.{number}.view_{side}: no view {view!r}.{did_you_mean(view, known)} The settings `augment` "
                    f"make {', '.join(known)}"
                )
            if lang != translated.get(view, lang):
                raise ValueError(
                    f"{path}.{number}.lang_{side} is {lang}, but the translators of view {view} end in "
                    f"{translated[view]}. Set lang_{side} to {translated[view]}"
                )


def _surrogates(value: object, path: str) -> Iterator[str]:
    """Yield the path of each text with a lone surrogate."""
    if isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value):
        yield path
    inner = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list | tuple) else ()
    for name, part in inner:
        yield from _surrogates(part, f"{path}.{name}".lstrip("."))
