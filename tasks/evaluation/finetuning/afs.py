"""Supervised Argument Facet Similarity (AFS): fine-tune an encoder on each fold and score the held-out pairs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, cast, get_args

import numpy as np
import polars as pl

from bsl.models.evaluation.config import FOLDS_OF, BootstrapConfig, Supervision
from bsl.models.views.annotated_pairs import both_orders, graded_pairs
from bsl.storage.artifacts.refs import ArtifactRef, ScoresRef
from bsl.storage.artifacts.schemas import PREDICTIONS
from bsl.storage.readers.benchmarks.afs import HIGH
from bsl.tasks.corpus.evaluation_sets import EvaluationSet, rows_of
from bsl.tasks.evaluation.afs import AfsSet, find_afs_set, read_afs_set
from bsl.tasks.evaluation.finetuning.finetune import CROSS, FineTuning, finetune, tuned_computation
from bsl.tasks.evaluation.kind import DRAWS_VERSION, TunedKind, digest_of, publish_scores, with_signatures
from bsl.tasks.figures import PredictionsFigures
from bsl.tasks.stage.cached import StageContext, stage
from bsl.tasks.stage.cluster import run_shards

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bsl.models.training.config import TrainingConfig
    from bsl.tasks.evaluation.config import EvaluationSettings
    from bsl.tasks.evaluation.systems import NamedEncoder
    from bsl.tasks.stage.run_context import RunContext


class AfsFolds(EvaluationSet):
    """AFS under a supervised protocol."""

    arguments: AfsSet
    protocol: Supervision

    def read(self) -> Mapping[str, pl.DataFrame]:
        """Return the rows of AFS."""
        return rows_of(self.arguments)


@dataclass(frozen=True)
class SupervisedAfsKind(TunedKind[AfsFolds]):
    """Supervised AFS, one stage for each fold; `prefix` begins the names of its sets, before the protocol."""

    prefix: str
    training: Callable[[EvaluationSettings], TrainingConfig]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the sets, one for each protocol."""
        return tuple(f"{self.prefix}-{protocol}" for protocol in get_args(Supervision))

    def find(self, site: RunContext, name: str) -> AfsFolds:
        """Find the files; see `find_afs_set`."""
        protocol = cast("Supervision", name.removeprefix(f"{self.prefix}-"))
        return AfsFolds(dataset=name, arguments=find_afs_set(site), protocol=protocol)

    def scores(
        self, site: RunContext, candidate: NamedEncoder, sets: tuple[AfsFolds, ...], config: EvaluationSettings
    ) -> list[ScoresRef]:
        """Score an encoder; one artifact for each protocol, from the predictions of all its folds."""
        label, checkpoint = candidate.label, candidate.checkpoint
        tuning = FineTuning(encoder=candidate.encoder, network=candidate.config, config=self.training(config))
        calls = [
            (tuning, of.arguments, of.protocol, fold, config.bootstrap.seed)
            for of in sets
            for fold in range(FOLDS_OF[of.protocol])
        ]
        runs = run_shards(site, predict_afs, calls)
        folds = [tuple(islice(runs, FOLDS_OF[of.protocol])) for of in sets]
        return [
            score_afs_predictions(site, predictions, of.protocol, label, checkpoint, config.bootstrap)
            for of, predictions in zip(sets, folds, strict=True)
        ]


@stage(ref=ArtifactRef, kind="predictions", version=5, uses_torch=True)
def predict_afs(
    context: StageContext, tuning: FineTuning, arguments: AfsSet, protocol: Supervision, fold: int, seed: int
) -> None:
    """Fine-tune on one fold's training pairs and score its test pairs; a killed run loses at most one fold.

    Column `cosine` contains the score of a cross-encoder.
    """
    from bsl.models.evaluation.afs import afs_folds

    pairs = read_afs_set(arguments)
    train, test = afs_folds(pairs, protocol, seed)[fold]
    task = f"fine-tuning on AFS ({protocol}, fold {fold})"
    similarity = finetune(context, tuning.seeded(seed), both_orders(graded_pairs(pairs[train], HIGH)), task)
    rows = pairs[test].select("topic", gold="score", cosine=pl.Series(similarity(pairs[test])))
    predictions = rows.with_columns(row=pl.Series(test.astype(np.uint32))).select(PREDICTIONS.names())
    context.draft.write(predictions.sort("row").cast(PREDICTIONS))
    computation = tuned_computation(context, tuning, protocol)
    context.draft.note(PredictionsFigures(signature=computation, data=digest_of(arguments)))


@stage(ref=ScoresRef, version=3 + DRAWS_VERSION)
def score_afs_predictions(
    context: StageContext,
    predictions: tuple[ArtifactRef, ...],
    protocol: Supervision,
    model: str,
    checkpoint: str,
    config: BootstrapConfig,
) -> None:
    """Correlate the predictions of all folds with the gold scores, topic by topic; cross-encoders are marked."""
    from bsl.models.evaluation.afs import afs_scores

    tables = [context.store.scan(ref).collect() for ref in predictions]
    # All folds have the same settings.
    noted = context.store.manifest(predictions[0]).figures_as(PredictionsFigures)
    scored = pl.concat(tables).sort("row")
    figures = afs_scores(scored, protocol, resamples=config.resamples, seed=config.seed)
    places = figures.select("dataset", "split").unique().rows()
    crossed = noted.signature["vectors"] == CROSS
    named = figures.with_columns(protocol=pl.lit(f"{CROSS}-{protocol}" if crossed else protocol))
    by = "score" if crossed else "cosine"
    signatures = with_signatures(named, dict.fromkeys(places, noted.data), noted.signature, by=by)
    title = f"Argument Facet Similarity of {model} ({protocol})"
    publish_scores(context, signatures, model, checkpoint, config.seed, title)
