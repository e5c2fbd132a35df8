"""Argument Facet Similarity (AFS): find the user's files, and score vectors under the unsupervised protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

import polars as pl

from bsl.storage.errors import SourceError
from bsl.storage.readers.benchmarks.afs import TOPICS, read_afs, topic_file
from bsl.storage.sources.sources import ResolvedSource, SourceSpec, resolve_source
from bsl.tasks.corpus.evaluation_sets import EvaluationSet, rows_of
from bsl.tasks.evaluation.kind import FrozenKind, digests, with_signatures
from bsl.tasks.rendering.paper_tables import PaperTable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bsl.models.evaluation.config import ScoringConfig
    from bsl.tasks.embedding.vectors import Vectors
    from bsl.tasks.stage.run_context import RunContext

AFS: Final = "afs"
_SPLIT: Final = "all"


class AfsSet(EvaluationSet):
    """The three files of the dataset."""

    dataset: str = AFS
    topics: tuple[ResolvedSource, ...]
    """Files in the order of `TOPICS`."""

    def read(self) -> Mapping[str, pl.DataFrame]:
        """Return all pairs, topic by topic: `topic`, `score`, `sentence1`, `sentence2`."""
        return {_SPLIT: pl.concat([read_afs(source.files[0]) for source in self.topics])}


class AfsKind(FrozenKind[AfsSet]):
    """AFS under the unsupervised protocol."""

    title = "Argument facet similarity"
    suites: ClassVar = {AFS: (AFS,)}
    tables = (
        PaperTable(
            title=title,
            columns=tuple((f"{AFS}/{topic}", topic) for topic in TOPICS),
            metrics=("pearson", "spearman"),
        ),
    )

    def find(self, site: RunContext, name: str) -> AfsSet:  # noqa: ARG002 - there is one
        """Find the files; see `find_afs_set`."""
        return find_afs_set(site)

    def figures(
        self,
        sets: tuple[AfsSet, ...],
        vectors: Vectors,
        config: ScoringConfig,
        device: str = "cpu",  # noqa: ARG002 - correlations need none
    ) -> pl.DataFrame:
        """Return both correlations of each topic, and their means."""
        from bsl.models.evaluation.afs import afs_scores

        (arguments,), drawn = sets, config.bootstrap
        pairs = read_afs_set(arguments)
        scored = pairs.select("topic", gold="score", cosine=pl.Series(vectors.cosines(pairs, AFS)))
        figures = afs_scores(scored, "unsupervised", resamples=drawn.resamples, seed=drawn.seed)
        return with_signatures(figures, digests(figures, sets), vectors.computation, by="cosine")


def find_afs_set(site: RunContext) -> AfsSet:
    """Find ArgPairs_{GC,GM,DP}.csv in the mirror's folder `afs`; the Hub has no copy.

    Raises:
        SourceError: No mirror is set, or a file is missing.
    """
    if site.mirror is None:
        raise SourceError(
            "afs: no mirror is set, and the Hub has no copy of the official files. Put ArgPairs_GC.csv, "
            "ArgPairs_GM.csv and ArgPairs_DP.csv into a folder `afs` and set BSL_DATA_MIRROR to its parent folder."
        )
    folder = f"{site.mirror.rstrip('/')}/{AFS}"
    specs = [SourceSpec(path=topic_file(folder, topic), name=topic, format="csv") for topic in TOPICS]
    return AfsSet(topics=tuple(resolve_source(spec) for spec in specs))


def read_afs_set(arguments: AfsSet) -> pl.DataFrame:
    """Return all pairs, topic by topic: `topic`, `score`, `sentence1`, `sentence2`."""
    return rows_of(arguments)[_SPLIT]
