"""The user's labels as an evaluation set: accuracy on classes, or Spearman correlation of scored pairs.

The name of a set is `labels:` and a file as of `bsl adapt --labels`. All its rows are scored, except those of classes
that are too rare for the linear probe.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from models.evaluation.config import BootstrapConfig, ScoringConfig
from storage.artifacts.refs import EmbeddingsRef, ScoresRef
from storage.sources.labels import SET_PREFIX, LabelSource, label_source
from tasks.corpus.evaluation_sets import EvaluationSet, rows_of
from tasks.corpus.labels import evaluation_rows, sides_of
from tasks.embedding.vectors import Vectors, open_vectors
from tasks.evaluation.kind import DrawnKind, publish_scores
from tasks.stage.cached import StageContext, stage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from models.evaluation.sweep import SetDraws
    from tasks.evaluation.systems import System
    from tasks.stage.run_context import RunContext

_PART: Final = "labels"


class LabelledSet(EvaluationSet):
    """Rows of a user's file of labels, sorted, so that their order in the file changes no figure."""

    labels: LabelSource

    def read(self) -> Mapping[str, pl.DataFrame]:
        """Return the rows: `text_1`, `text_2` (for pairs), `label`."""
        return {_PART: evaluation_rows(self.labels)}

    def sentences(self) -> pl.Series:
        """Return the texts, side by side."""
        return pl.concat([rows_of(self)[_PART][side].alias("text") for side in sides_of(self.labels)])


class OwnLabelsKind(DrawnKind[LabelledSet]):
    """Accuracy or Spearman correlation on the user's labels."""

    @property
    def names(self) -> tuple[str, ...]:
        """The form of a name."""
        return (f"{SET_PREFIX}FILE",)

    @property
    def headline(self) -> tuple[str, ...]:
        """The metrics of classes and of pairs."""
        return ("accuracy", "spearman")

    def knows(self, name: str) -> bool:
        """Whether the name begins with `labels:`."""
        return name.startswith(SET_PREFIX)

    def find(self, site: RunContext, name: str) -> LabelledSet:  # noqa: ARG002 - a mirror has no own labels
        """Find the file.

        Raises:
            SourceError: no file, or no labels in it.
        """
        return LabelledSet(dataset=name, labels=label_source(name.removeprefix(SET_PREFIX)))

    def scores(
        self, site: RunContext, system: System, sets: tuple[LabelledSet, ...], config: ScoringConfig
    ) -> list[ScoresRef]:
        """Return one artifact for all sets."""
        return [score_own_labels(site, system.embeddings, system.label, system.checkpoint, sets, config.bootstrap)]

    def draws(
        self, evaluation_set: LabelledSet, systems: Sequence[Sequence[Vectors]], config: BootstrapConfig
    ) -> list[SetDraws]:
        """Return the draws of the set's only figure."""
        name, rows = evaluation_set.dataset, rows_of(evaluation_set)[_PART]
        return [replace(label_draws(name, rows, evaluation_set.labels, systems, config), split="all", group=name)]


@stage(ref=ScoresRef, version=1)
def score_own_labels(
    context: StageContext,
    embeddings: EmbeddingsRef,
    model: str,
    checkpoint: str,
    sets: tuple[LabelledSet, ...],
    config: BootstrapConfig,
) -> None:
    """Score a system on own labels."""
    figures = OwnLabelsKind().figures(sets, open_vectors(context.store, embeddings), ScoringConfig(bootstrap=config))
    publish_scores(context, figures, model, checkpoint, config.seed, f"Own labels by {model}")


def label_draws(
    name: str,
    rows: pl.DataFrame,
    labels: LabelSource,
    systems: Sequence[Sequence[Vectors]],
    config: BootstrapConfig,
) -> SetDraws:
    """Return the accuracy on classes or the Spearman correlation of pairs, on the same draws for all systems.

    Args:
        name: Name of the set.
        rows: `text_1`, `text_2` (for pairs), `label`.
        labels: Their source.
        systems: For each system, the vectors of its encoders, one per seed.
        config: Number and seed of the draws.
    """
    from models.evaluation.labels import class_accuracy, labelled_of, row_draws
    from models.evaluation.sweep import SetDraws

    labelled = labelled_of(rows, labels.kind)

    def outcomes(encoder: Vectors) -> NDArray[np.float64]:
        if labelled.kind == "classes":
            return class_accuracy(encoder.features(pl.Series(labelled.first), _PART), labelled)
        pairs = pl.DataFrame({"sentence1": labelled.first, "sentence2": labelled.second})
        return encoder.cosines(pairs, _PART)

    found = [np.stack([outcomes(encoder) for encoder in seeds]) for seeds in systems]
    gold = labelled.gold if labelled.kind == "pairs" else None
    draws = row_draws(found, gold, resamples=config.resamples, seed=config.seed + 100)
    return SetDraws(name, labelled.metric, "labels", draws, n=len(labelled))
