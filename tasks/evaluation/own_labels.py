"""The user's labels as an evaluation set: accuracies on classes, or Spearman correlation of scored pairs.

The name of a set is `labels:` and a file as of `bsl adapt --labels`. All its rows are scored, except those of classes
that are too rare for the linear probe.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final

import numpy as np
import polars as pl

from bsl.models.corpus.labels import JUDGE, TEACH
from bsl.models.errors import EvaluationError
from bsl.models.evaluation.uses import ACCURACY, GROUPING, LABELS, SPEARMAN
from bsl.storage.artifacts.refs import PassagesRef
from bsl.storage.artifacts.store import Store
from bsl.storage.record import NotInKey
from bsl.storage.sources.labels import SET_PREFIX, LabelSource, label_source
from bsl.tasks.corpus.evaluation_sets import EvaluationSet, rows_of
from bsl.tasks.corpus.labels import evaluation_rows, labelled_rows, sides_of
from bsl.tasks.evaluation.kind import FrozenKind
from bsl.tasks.stage.ui import progress_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bsl.models.evaluation.config import BootstrapConfig
    from bsl.models.evaluation.labels import ClassAccuracies, Labelled
    from bsl.models.evaluation.probe.problem import Features
    from bsl.models.evaluation.significance.hierarchical import BootstrapDraws
    from bsl.models.evaluation.sweep import SetDraws
    from bsl.models.runtime.progress import OnProgress
    from bsl.tasks.embedding.vectors import Vectors
    from bsl.tasks.stage.run_context import RunContext

_PART: Final = "labels"
_DRAWS_APART: Final = 100  # added to the seed, so that draws of rows are independent of draws of documents


class LabelledSet(EvaluationSet):
    """Rows of a user's file of labels, sorted, so that their order in the file changes no figure."""

    labels: LabelSource

    def read(self) -> Mapping[str, pl.DataFrame]:
        """Return the rows: `text_1`, `text_2` (for pairs), `label`."""
        return {_PART: evaluation_rows(self.labels)}

    def sentences(self) -> pl.Series:
        """Return the texts, side by side."""
        return pl.concat([rows_of(self)[_PART][side].alias("text") for side in sides_of(self.labels)])


class HeldOutLabels(LabelledSet):
    """Test labels of a run's own text."""

    dataset: str = "your labels"
    passages: PassagesRef
    store: Annotated[str, NotInKey]

    def read(self) -> Mapping[str, pl.DataFrame]:
        """Return the test rows: `text_1`, `text_2` (for pairs), `label`."""
        rows = labelled_rows(Store(self.store), self.passages, self.labels, use="adapt")
        return {_PART: rows.filter(part=JUDGE).drop("part")}


class OwnLabelsKind(FrozenKind[LabelledSet]):
    """Accuracies or Spearman correlation on the user's labels."""

    title = "Own labels"
    names = (f"{SET_PREFIX}FILE",)
    headline = (ACCURACY, GROUPING, SPEARMAN)

    def knows(self, name: str) -> bool:
        """Whether the name begins with `labels:`."""
        return name.startswith(SET_PREFIX)

    def find(self, site: RunContext, name: str) -> LabelledSet:  # noqa: ARG002 - a mirror has no own labels
        """Find the file.

        Raises:
            SourceError: no file, or no labels in it.
        """
        return LabelledSet(dataset=name, labels=label_source(name.removeprefix(SET_PREFIX)))

    def draws(
        self, evaluation_set: LabelledSet, systems: Sequence[Sequence[Vectors]], config: BootstrapConfig
    ) -> list[SetDraws]:
        """Return the draws of the set's figures; accuracies by neighbours and centroids have a split of their own."""
        name, rows = evaluation_set.dataset, rows_of(evaluation_set)[_PART]
        found = label_draws(name, rows, evaluation_set.labels, systems, config)
        return [replace(one, split=one.split or "all", group=one.group and name) for one in found]


def label_draws(
    name: str,
    rows: pl.DataFrame,
    labels: LabelSource,
    systems: Sequence[Sequence[Vectors]],
    config: BootstrapConfig,
    training: pl.DataFrame | None = None,
) -> list[SetDraws]:
    """Return the two accuracies on classes, or the Spearman correlation of pairs, on the same draws for all systems.

    Rows have `text_1`, `text_2` (for pairs) and `label`; with a column `document`, documents are drawn. The classifier
    learns from `training`, other rows of the same classes; without them it is cross-validated on `rows`.
    """
    from bsl.models.evaluation.labels import labelled_of
    from bsl.models.evaluation.significance.hierarchical import draws_of
    from bsl.models.evaluation.sweep import SetDraws

    labelled = labelled_of(rows, labels.kind)
    if labelled.kind == "classes":
        learnt = None if training is None else labelled_of(training, labels.kind, labelled.names)
        return list(_class_draws(name, labelled, learnt, systems, config))
    pairs = pl.DataFrame({"sentence1": labelled.first, "sentence2": labelled.second})
    cosines = [np.stack([encoder.cosines(pairs, _PART) for encoder in seeds]) for seeds in systems]
    resamples, seed = config.resamples, config.seed + _DRAWS_APART
    try:
        draws = tuple(
            draws_of(labelled.gold, rows_SN, resamples=resamples, seed=seed, unit_N=labelled.unit)
            for rows_SN in cosines
        )
    except EvaluationError as error:
        raise EvaluationError(f"{name} (first scores = yours, second = cosine): {error}") from error
    return [SetDraws(name, SPEARMAN, LABELS, draws, n=len(labelled))]


def _class_draws(
    name: str,
    labelled: Labelled,
    learnt: Labelled | None,
    systems: Sequence[Sequence[Vectors]],
    config: BootstrapConfig,
) -> Iterator[SetDraws]:
    """Yield the draws of the classifier's accuracy, then those of the grouping accuracy."""
    from bsl.models.evaluation.sweep import SetDraws, outcome_draws

    advance = progress_of(f"classifying {name}, penalties")
    found = [[accuracies_of(encoder, labelled, learnt, advance) for encoder in seeds] for seeds in systems]
    units = labelled.units
    resamples, seed = config.resamples, config.seed + _DRAWS_APART
    right = [np.stack([one.classifier for one in seeds]) for seeds in found]
    drawn = outcome_draws(right, units, resamples=resamples, seed=seed)
    yield SetDraws(name, ACCURACY, LABELS, drawn, n=len(labelled))
    drawn = tuple(
        _grouping_draws(seeds, scores, labelled, resamples=resamples, seed=seed)
        for seeds, scores in zip(systems, found, strict=True)
    )
    yield SetDraws(name, GROUPING, LABELS, drawn, split="grouping", n=len(labelled))


def _grouping_draws(
    seeds: Sequence[Vectors], found: Sequence[ClassAccuracies], labelled: Labelled, *, resamples: int, seed: int
) -> BootstrapDraws:
    """Return the grouping accuracy of a system's encoders on all rows, as found, and on draws of their units."""
    from bsl.models.evaluation.grouping import grouping_draws
    from bsl.models.evaluation.significance.hierarchical import BootstrapDraws

    gold, units = labelled.gold.astype(np.int64), labelled.units
    columns = [
        grouping_draws(features_of(encoder, labelled), gold, units, resamples=resamples, seed=seed) for encoder in seeds
    ]
    return BootstrapDraws(np.array([one.grouping.mean() for one in found]), np.stack(columns, axis=1))


def features_of(encoder: Vectors, labelled: Labelled) -> Features:
    """Return an encoder's vectors of labelled texts, (N, D)."""
    return encoder.features(pl.Series(labelled.first), _PART)


def accuracies_of(
    encoder: Vectors, labelled: Labelled, learnt: Labelled | None, on_progress: OnProgress | None = None
) -> ClassAccuracies:
    """Return the accuracies of an encoder's vectors on classes.

    The classifier learns from the rows `learnt`; without them it is cross-validated.
    """
    from bsl.models.evaluation.labels import class_accuracies

    training = None if learnt is None else (features_of(encoder, learnt), learnt)
    return class_accuracies(features_of(encoder, labelled), labelled, training, on_progress)


def class_rows(rows: pl.DataFrame) -> tuple[Labelled, Labelled | None]:
    """Return the test rows and the training rows, None without any, of a table of classes with the column `part`."""
    from bsl.models.evaluation.labels import labelled_of

    test, learnt = (rows.filter(part=part) for part in (JUDGE, TEACH))
    labelled = labelled_of(test, "classes")
    return labelled, None if learnt.is_empty() else labelled_of(learnt, "classes", labelled.names)
