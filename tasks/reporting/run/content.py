"""The inputs of a run's page: artifacts, settings, and the tables that the stage has read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bsl.models.evaluation.verdict import deciding_comparison
from bsl.storage.artifacts.refs import (
    ArtifactRef,
    CheckpointRef,
    ComparisonRef,
    CorpusRef,
    EmbeddingsRef,
    PairsRef,
    ScoresRef,
    ViewsRef,
)
from bsl.storage.sources.sources import SourceSpec
from bsl.tasks.corpus.evaluation_sets import ScoredSet
from bsl.tasks.rendering.paper_tables import PaperTable
from bsl.tasks.reporting.card import NO_CARD, BaseCard
from bsl.tasks.reporting.evaluation import Missing
from bsl.tasks.settings import RunSettings
from bsl.tasks.stage.cached import StageInputs

if TYPE_CHECKING:
    import polars as pl

    from bsl.models.evaluation.verdict import Verdict
    from bsl.storage.artifacts.store import Store
    from bsl.tasks.stage.cached import StageContext


class ReportContent(StageInputs):
    """Content of a run's page that is in no artifact."""

    title: str
    missing: Missing
    tables: tuple[PaperTable, ...]
    published: tuple[str, ...]
    """Systems with published figures to show."""
    settings: RunSettings
    sources: tuple[SourceSpec, ...]
    """Sources of the corpus; the card needs their names, which the corpus's key does not contain."""
    base: BaseCard = NO_CARD
    """What the original encoder's own card says."""


class RunArtifacts(StageInputs):
    """The artifacts of a run, and the sets of its vectors."""

    corpus: CorpusRef
    views: ViewsRef | None
    """Views of the sentences; None without training."""
    pairs: tuple[PairsRef, ...]
    """Training pairs, one artifact per training."""
    checkpoints: tuple[CheckpointRef, ...]
    """Encoders, one per training."""
    folded: tuple[CheckpointRef, ...]
    """Encoders that include a post-hoc transform."""
    scores: tuple[ScoresRef, ...]
    comparisons: tuple[ComparisonRef, ...]
    vectors: dict[str, EmbeddingsRef]
    """System → its vectors of all sets."""
    sets: tuple[ScoredSet, ...]

    @property
    def refs(self) -> tuple[ArtifactRef, ...]:
        """All artifacts, in the order of the pipeline."""
        views = [self.views] if self.views else []
        figures = (*self.scores, *self.comparisons)
        return (self.corpus, *views, *self.pairs, *self.checkpoints, *self.vectors.values(), *figures)


@dataclass(frozen=True)
class Run:
    """A finished run, as input of its page.

    Without scored pairs there is no comparison; without training, no verdict.
    """

    context: StageContext
    artifacts: RunArtifacts
    content: ReportContent
    scores: pl.DataFrame
    comparison: pl.DataFrame | None
    verdict: Verdict | None

    @property
    def store(self) -> Store:
        """The store of the artifacts."""
        return self.context.store

    @property
    def settings(self) -> RunSettings:
        """The configuration."""
        return self.content.settings

    @property
    def trainings(self) -> list[str]:
        """The name of each training; numbered if there are several."""
        labels = [phase.training.objective.label for phase in self.settings.phases]
        return [f"{number}. {label}" for number, label in enumerate(labels, start=1)] if len(labels) > 1 else labels

    @property
    def deciding(self) -> tuple[str, str] | None:
        """The dataset and split that decide the verdict; None without one."""
        if self.verdict is None:
            return None
        dev = self.settings.selecting_dev or ""
        row = deciding_comparison(self.comparison, self.settings.systems, {dev.removeprefix("embedded:")})
        return (row["dataset"], row["split"]) if row else None
