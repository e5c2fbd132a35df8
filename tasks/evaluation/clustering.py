"""Clustering of frozen vectors as in MTEB: k-means, scored by V-measure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from models.evaluation.config import BootstrapConfig, ScoringConfig
from storage.artifacts.refs import EmbeddingsRef, ScoresRef
from storage.datasets.benchmarks import CLUSTERING
from storage.datasets.registry import suites_of
from storage.readers.benchmarks.clustering import read_clusters
from storage.sources.read import local_files
from storage.sources.sources import ResolvedSource, SourceSpec, resolve_source
from tasks.corpus.evaluation_sets import EvaluationSet, rows_of
from tasks.embedding.vectors import Vectors, open_vectors
from tasks.evaluation.kind import FrozenKind, digests, publish_scores, signed
from tasks.rendering.paper_tables import PaperTable
from tasks.stage.cached import StageContext, stage
from tasks.stage.ui import progress_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tasks.evaluation.systems import System
    from tasks.stage.run_context import RunContext

_SPLIT: Final = "test"
_METRIC: Final = "v-measure"


class ClusterSet(EvaluationSet):
    """The test split of a clustering task, which consists of several sets of labelled texts."""

    source: ResolvedSource

    def read(self) -> Mapping[str, pl.DataFrame]:
        """Return the table; its columns are `storage.readers.benchmarks.clustering.CLUSTERS`."""
        return {_SPLIT: read_clusters(local_files(self.source)[0])}


class ClusteringKind(FrozenKind[ClusterSet]):
    """Clustering by k-means, scored by V-measure."""

    @property
    def suites(self) -> Mapping[str, tuple[str, ...]]:
        """Suites of the declared clustering datasets."""
        return {suite: tuple(dataset.name for dataset in members) for suite, members in suites_of(CLUSTERING).items()}

    def find(self, site: RunContext, name: str) -> ClusterSet:
        """Find MTEB's file in the mirror, or on the Hub.

        Raises:
            SourceError: The set is not available.
        """
        return ClusterSet(dataset=name, source=resolve_source(SourceSpec(dataset=name, split=_SPLIT), site.mirror))

    def scores(
        self, site: RunContext, system: System, sets: tuple[ClusterSet, ...], config: ScoringConfig
    ) -> list[ScoresRef]:
        """Score a system; one artifact for all sets."""
        return [score_clustering(site, system.embeddings, system.label, system.checkpoint, sets, config.bootstrap)]

    def figures(
        self,
        sets: tuple[ClusterSet, ...],
        vectors: Vectors,
        config: ScoringConfig,
        device: str = "cpu",  # noqa: ARG002 - k-means is scikit-learn's
    ) -> pl.DataFrame:
        """Return the mean V-measure over each task's sets, with its interval over the sets."""
        figures = pl.DataFrame([_figure(clusters, vectors, config.bootstrap) for clusters in sets])
        by = {"by": "mini-batch k-means", "seed": config.bootstrap.seed}
        return signed(figures, digests(figures, sets), vectors.computation, **by)

    @property
    def tables(self) -> tuple[PaperTable, ...]:
        """Table with one column for each task."""
        columns = tuple((dataset.name, dataset.heading) for dataset in CLUSTERING)
        return (PaperTable(title="Clustering", columns=columns, metrics=(_METRIC,)),)


@stage(ref=ScoresRef, version=1)
def score_clustering(
    context: StageContext,
    embeddings: EmbeddingsRef,
    model: str,
    checkpoint: str,
    sets: tuple[ClusterSet, ...],
    config: BootstrapConfig,
) -> None:
    """Cluster the embeddings of each set, and compare the clusters with its labels by V-measure."""
    figures = ClusteringKind().figures(sets, open_vectors(context.store, embeddings), ScoringConfig(bootstrap=config))
    publish_scores(context, figures, model, checkpoint, config.seed, f"Clustering of {model}")


def _figure(clusters: ClusterSet, vectors: Vectors, config: BootstrapConfig) -> dict[str, Any]:
    from models.evaluation.metrics import v_measure
    from models.evaluation.significance.bootstrap import mean_resamples, percentile_interval

    table, values = rows_of(clusters)[_SPLIT], list[float]()
    progress = progress_of(f"clustering {clusters.dataset}")
    parts = table.partition_by("subset", maintain_order=True)
    for number, rows in enumerate(parts, start=1):
        features = vectors.features(rows["text"], clusters.dataset)
        values.append(v_measure(features, rows["label"].to_list(), config.seed))
        progress(number, len(parts), "")
    draws = mean_resamples(values, resamples=config.resamples, seed=config.seed)
    low, high = percentile_interval(draws) if len(values) > 1 else (None, None)
    return {
        "dataset": clusters.dataset,
        "subset": "all",
        "split": _SPLIT,
        "metric": _METRIC,
        "protocol": "mteb",
        "value": sum(values) / len(values),
        "n": table.height,
        "ci_low": low,
        "ci_high": high,
    }
