"""Figures of stages that other code reads: a stage records them in its manifest, `Manifest.figures_as` returns them.

A figure that is not always recorded has a default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, Field, JsonValue

from bsl.models.corpus.corpus import CorpusStatistics
from bsl.models.evaluation.uses import UseName
from bsl.models.evaluation.verdict import Verdict, Word
from bsl.storage.artifacts.manifest import Figures
from bsl.storage.readers.read_report import BadRecord

if TYPE_CHECKING:
    from bsl.models.training.loop import TrainingResult


class SourceCounts(BaseModel):
    """Records of a source, and the first unreadable ones."""

    name: str
    records: int
    unreadable: int
    bad: list[BadRecord]


class IngestFigures(Figures):
    """Figures of a corpus from sources."""

    statistics: CorpusStatistics
    sources: list[SourceCounts]


class PassagesFigures(Figures):
    """Numbers of sentences of the user's text: used, too short, too long, and of documents of an earlier file."""

    sentences: int
    too_short: int = Field(alias="too short")
    too_long: int = Field(alias="too long")
    copied: int = Field(0, alias="of an earlier file")
    unreadable: int = 0
    """Number of records that cannot be read."""
    first_unreadable: str = Field("", alias="first unreadable")


class OwnCorpusFigures(Figures):
    """Numbers of unique training sentences and of held-out sentences of the user's text."""

    sentences: int
    held_out: int


class LabelCounts(Figures):
    """Rows of a file of labels, as figures of the training corpus; groups are documents, writers or customers."""

    label_rows: int = 0
    rare_classes: dict[str, int] = Field({})
    """Rows of each class that is too rare to use."""
    similar_classes: dict[str, str] = Field({})
    """Rare class → the class of which it may be a misspelling."""
    idle_labels: int = 0
    """Other unused rows."""
    test: int = Field(0, alias="labels judge")
    training: int = Field(0, alias="labels teach")
    test_groups: int = Field(0, alias="label groups judge")
    training_groups: int = Field(0, alias="label groups teach")


class ToLabelFigures(Figures):
    """The seed of a choice of texts to label, and the numbers of texts before and after it."""

    seed: int
    candidates: int
    rows: int


class ShardFigures(Figures):
    """Number of translated tokens of a shard, and the seconds of its translation."""

    target_tokens: int
    seconds: float
    long_sentences: int = 0
    """Sentences longer than `max_source_tokens`, whose end was not translated."""
    cut_translations: int = 0
    """Other translations, cut at their largest number of tokens."""


class Outcome(BaseModel):
    """Number of sentences that a method gave a view of, or that it dropped for a reason."""

    method: str
    outcome: str
    n: int


class ViewsFigures(Figures):
    """Outcomes of the sentences of a corpus, and the cost of each translation hop."""

    hops: list[dict[str, JsonValue]] = Field([])
    outcomes: list[Outcome] = Field([])


class PairsFigures(Figures):
    """Numbers of pairs of each pairing, and of sentences without a pair."""

    pairings: list[dict[str, JsonValue]] = Field([])


class LabelPairsFigures(Figures):
    """Numbers of training labels, and of pairs made of them."""

    labels: int = 0
    pairs: int = 0


class Speed(BaseModel):
    """Speed of a training call's steps, without evaluations."""

    pairs_per_s: float
    tokens_per_s: float
    mfu: float | None
    """Share of the device's peak; None if that is unknown."""

    @classmethod
    def of(cls, result: TrainingResult) -> Speed:
        """Return the speed of a result, rounded."""
        speed = result.throughput
        mfu = None if speed.mfu is None else round(speed.mfu, 4)
        return cls(pairs_per_s=round(speed.pairs_per_s, 2), tokens_per_s=round(speed.tokens_per_s, 1), mfu=mfu)


class LengthFigures(Figures):
    """Maximum length of an encoder's texts, in tokens."""

    max_length: int


class TrainingFigures(Figures):
    """Figures of a training, from `bsl.models.training.loop.TrainingResult`; a score may be NaN."""

    steps: int
    start_dev_spearman: float | None
    best_dev_spearman: float | None
    best_step: int
    finding: str
    max_length: int
    measured: Speed
    """Separate, since it differs between equal runs."""


class VectorsFigures(Figures):
    """Numbers of sentences and dimensions of vectors, and the fields of their signature."""

    sentences: int = 0
    embedded: int = 0
    """Sentences embedded by this stage; the others had vectors in the store."""
    dimensions: int = 0
    signature: dict[str, JsonValue] = Field({"vectors": "unsigned"})


class PredictionsFigures(Figures):
    """Fields of the signature of predictions, and the digest of the set."""

    signature: dict[str, JsonValue]
    data: str


class ResultFigures(Figures):
    """Findings of any result, such as its verdict, and the number of bootstrap draws; None without a comparison."""

    findings: list[str] = Field([])
    draws: int | None = None


class EvaluationFigures(Figures):
    """The missing sets of an evaluation, with reasons, and notes about its scores."""

    missing: dict[str, str]
    notes: list[str]


class SweepFigures(Figures):
    """The set that decides a sweep, why systems have no figures, and notes."""

    shown: str
    faults: dict[str, str]
    notes: list[str]
    draws: int | None = None
    """Bootstrap draws of each comparison; None before version 13 of `compare_systems`."""


class ReportFigures(Figures):
    """Figures of the report of a run or of an adaptation."""

    result: str = ""
    """Name of the final system; a comparison of runs finds its vectors and scores by it."""
    verdict: str | None = None
    """None without training, as the next two."""
    reason: str | None = None
    advice: str | None = None
    adapted: bool | None = None
    """Whether the exported encoder of an adaptation is the adapted one; None for other runs."""


class ShareFigures(Figures):
    """Share of the trained weights in a merged encoder."""

    share: float


class ProofFigures(Figures):
    """The verdict on an adapted encoder, the answer for each use, and the number of bootstrap draws."""

    verdict: Word
    verdict_for: str
    reason: str
    advice: str
    used_for: UseName | None
    uses: list[dict[str, JsonValue]]
    draws: int

    @property
    def judgement(self) -> Verdict:
        """The verdict with its sentences."""
        return Verdict(self.verdict, self.reason, self.advice, self.verdict_for)


class ExportFigures(Figures):
    """Whether the exported encoder is the adapted one."""

    adapted: bool


class AdaptationFigures(ProofFigures):
    """Figures of the report of an adaptation; texts are empty without labels or classifier."""

    findings: list[str]
    missing: list[str]
    """General sets that were not found."""
    rows: dict[str, int]
    """Numbers of sentences and labels for training and for evaluation."""
    split: str = Field(alias="split of labels")
    """How the labels were split."""
    adapted: bool
    classifier: str
    """Accuracy of the classifier."""


class ClassifierFigures(Figures):
    """Accuracies of a classifier on test labels, and its settings.

    The accuracies are those of the exported encoder, of the original encoder, and of the most frequent class alone,
    without which labels that are noise look like a result. Without training rows, the test was cross-validated.
    """

    accuracy: float
    original_accuracy: float
    majority_accuracy: float
    test_rows: int
    training_rows: int
    strength: float
    temperature: float
    rows: int
    """Rows that trained the published classifier."""
