"""Argument Facet Similarity: found in a user's folder, scored as it is or after fine-tuning, fold by fold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from models.evaluation.config import BootstrapConfig
from storage.artifacts.refs import EmbeddingsRef, ScoresRef
from storage.errors import SourceError
from storage.readers.benchmarks.afs import TOPICS, read_afs, topic_file
from storage.sources.sources import ResolvedSource, SourceSpec, resolve_source
from tasks.corpus.evaluation_sets import EvaluationSet, place_in_pairs, rows_of
from tasks.embedding.vectors import Vectors, open_vectors
from tasks.evaluation.kind import FrozenKind, digests, publish_scores, signed
from tasks.rendering.paper_tables import PaperTable
from tasks.stage.cached import StageContext, stage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from models.evaluation.config import AfsProtocol, ScoringConfig
    from tasks.evaluation.systems import System
    from tasks.stage.run_context import RunContext

AFS: Final = "afs"
_SPLIT: Final = "all"


class AfsSet(EvaluationSet):
    """The three files of the data set."""

    dataset: str = AFS
    topics: tuple[ResolvedSource, ...]
    """In the order of `TOPICS`."""

    def read(self) -> Mapping[str, pl.DataFrame]:
        """All pairs, topic by topic: `topic`, `score`, `sentence1`, `sentence2`."""
        return {_SPLIT: pl.concat([read_afs(source.files[0], source.name) for source in self.topics])}

    def sentences(self) -> pl.Series:
        """All sentences, as they are scored."""
        pairs = read_afs_set(self)
        return pl.concat([pairs["sentence1"].rename("text"), pairs["sentence2"].rename("text")])

    def place(self, number: int) -> str:
        """Row, counted through all topics, and side."""
        return place_in_pairs(self.dataset, number, read_afs_set(self).height)


class AfsKind(FrozenKind[AfsSet]):
    """The unsupervised protocol."""

    @property
    def suites(self) -> Mapping[str, tuple[str, ...]]:
        """The set itself."""
        return {AFS: (AFS,)}

    def find(self, site: RunContext, name: str) -> AfsSet:  # noqa: ARG002 - there is one
        """As `find_afs_set`."""
        return find_afs_set(site)

    def scores(
        self, site: RunContext, system: System, sets: tuple[AfsSet, ...], config: ScoringConfig
    ) -> list[ScoresRef]:
        """An artifact for each copy of the set."""
        return [
            score_afs(site, system.embeddings, system.label, system.checkpoint, arguments, config.bootstrap)
            for arguments in sets
        ]

    def figures(
        self,
        sets: tuple[AfsSet, ...],
        vectors: Vectors,
        config: ScoringConfig,
        device: str,  # noqa: ARG002 - correlations need none
    ) -> pl.DataFrame:
        """Both correlations of each topic, and their means."""
        return pl.concat([frozen_figures(arguments, vectors, config.bootstrap) for arguments in sets])

    @property
    def tables(self) -> tuple[PaperTable, ...]:
        """One column a topic."""
        columns = tuple((f"{AFS}/{topic}", topic) for topic in TOPICS)
        return (PaperTable(title="Argument facet similarity", columns=columns, metrics=("pearson", "spearman")),)


def find_afs_set(site: RunContext) -> AfsSet:
    """Find the official files in the mirror's folder `afs`.

    Raises:
        SourceError: there is no mirror, or it lacks a file.
    """
    if site.mirror is None:
        raise SourceError(
            "afs: the official files are on no Hub; put ArgPairs_GC.csv, ArgPairs_GM.csv and ArgPairs_DP.csv into a "
            "folder `afs` and set BSL_DATA_MIRROR to the folder above it"
        )
    return resolve_afs_set(f"{site.mirror.rstrip('/')}/{AFS}")


def resolve_afs_set(folder: str) -> AfsSet:
    """Find ArgPairs_{GC,GM,DP}.csv in a folder at any fsspec address; the Hub has no copy.

    Raises:
        SourceError: a file is not there.
    """
    specs = [SourceSpec(path=topic_file(folder, topic), name=topic, format="csv") for topic in TOPICS]
    return AfsSet(topics=tuple(resolve_source(spec) for spec in specs))


def read_afs_set(arguments: AfsSet) -> pl.DataFrame:
    """All pairs, topic by topic: `topic`, `score`, `sentence1`, `sentence2`."""
    return rows_of(arguments)[_SPLIT]


@stage(ref=ScoresRef, version=3)
def score_afs(
    work: StageContext,
    embeddings: EmbeddingsRef,
    model: str,
    checkpoint: str,
    arguments: AfsSet,
    config: BootstrapConfig,
) -> None:
    """Unsupervised: correlate the cosine of each pair's embeddings with its score, topic by topic."""
    figures = frozen_figures(arguments, open_vectors(work.store, embeddings), config)
    publish_afs(work, figures, "unsupervised", model, checkpoint, config)


def frozen_figures(arguments: AfsSet, vectors: Vectors, config: BootstrapConfig) -> pl.DataFrame:
    """Both correlations of each topic, and their means, with their signatures."""
    figures = afs_figures(afs_cosines(arguments, vectors), "unsupervised", config)
    return signed(figures, digests(figures, (arguments,)), vectors.made, by="cosine")


def afs_cosines(arguments: AfsSet, vectors: Vectors) -> pl.DataFrame:
    """`topic`, `gold` and the cosine of each pair."""
    pairs = read_afs_set(arguments)
    return pairs.select("topic", gold="score", cosine=pl.Series(vectors.cosines(pairs, AFS)))


def publish_afs(
    work: StageContext,
    figures: pl.DataFrame,
    protocol: AfsProtocol,
    model: str,
    checkpoint: str,
    config: BootstrapConfig,
) -> None:
    """Write signed figures."""
    title = f"Argument Facet Similarity of {model} ({protocol})"
    publish_scores(work, figures, model, checkpoint, config.seed, title)


def afs_figures(scored: pl.DataFrame, protocol: AfsProtocol, config: BootstrapConfig) -> pl.DataFrame:
    """As `models.evaluation.afs.afs_scores`."""
    from models.evaluation.afs import afs_scores

    return afs_scores(scored, protocol, resamples=config.resamples, seed=config.seed)
