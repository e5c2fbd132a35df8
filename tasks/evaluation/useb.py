"""USEB's domain sets on frozen vectors: ranking of questions and papers, and paraphrases of tweets."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

import polars as pl

from models.evaluation.config import BootstrapConfig, ScoringConfig
from storage.artifacts.refs import EmbeddingsRef, ScoresRef
from storage.datasets.benchmarks import USEB
from storage.datasets.registry import DATASETS, suites_of
from storage.readers.benchmarks.useb import READERS
from storage.sources.sources import SourceSpec, resolve_source
from tasks.corpus.evaluation_sets import SplitSet, rows_of
from tasks.embedding.vectors import Vectors, open_vectors
from tasks.evaluation.kind import FrozenKind, digests, publish_scores, signed
from tasks.rendering.paper_tables import PaperTable
from tasks.stage.cached import StageContext, stage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from models.evaluation.metrics import Ranking
    from models.evaluation.significance.bootstrap import DrawnScore
    from models.evaluation.sweep import SetDraws
    from tasks.evaluation.systems import System
    from tasks.stage.run_context import RunContext

_TEST: Final = "test"


class UsebSet(SplitSet):
    """One split of a USEB dataset."""

    def read(self) -> Mapping[str, pl.DataFrame]:
        """Return the table; its columns are `storage.readers.benchmarks.useb.RANKING` or `PARAPHRASES`."""
        return {self.split: READERS[self.dataset](self.source.files, self.split)}


class UsebKind(FrozenKind[UsebSet]):
    """USEB's datasets, each scored by the protocol of its script."""

    is_drawn = True

    @property
    def suites(self) -> Mapping[str, tuple[str, ...]]:
        """Suites of test splits; a dev split is requested by name, such as `askubuntu/dev`."""
        return {suite: tuple(dataset.name for dataset in members) for suite, members in suites_of(USEB).items()}

    def knows(self, name: str) -> bool:
        """Return whether the name is a split of a USEB dataset."""
        dataset, split = _split_name(name)
        return dataset in READERS and split in DATASETS[dataset].splits

    def find(self, site: RunContext, name: str) -> UsebSet:
        """Find the files of the evaluation archive in the mirror.

        Raises:
            SourceError: No mirror has the files of the set; the message names the archive to unpack.
        """
        dataset, split = _split_name(name)
        return UsebSet(
            dataset=dataset,
            split=split,
            source=resolve_source(SourceSpec(dataset=dataset, split=split), site.mirror),
        )

    def scores(
        self, site: RunContext, system: System, sets: tuple[UsebSet, ...], config: ScoringConfig
    ) -> list[ScoresRef]:
        """Score a system; one artifact for all sets."""
        return [score_useb(site, system.embeddings, system.label, system.checkpoint, sets, config.bootstrap)]

    def figures(
        self,
        sets: tuple[UsebSet, ...],
        vectors: Vectors,
        config: ScoringConfig,
        device: str = "cpu",  # noqa: ARG002 - cosines need none
    ) -> pl.DataFrame:
        """Return the average precision of each set, and the other metrics of its script."""
        from models.evaluation.useb import useb_rows

        parts = [(useb, _parts(useb, vectors, config.bootstrap)) for useb in sets]
        found = [row for useb, scores in parts for row in useb_rows(useb.dataset, useb.split, scores)]
        table = pl.DataFrame([asdict(row) for row in found])
        return signed(table, digests(table, sets), vectors.computation, by="cosine")

    def draws(self, useb: UsebSet, systems: Sequence[Sequence[Vectors]], config: BootstrapConfig) -> list[SetDraws]:
        """Return the average precision of each system on the same draws of queries and pairs."""
        import numpy as np

        from models.evaluation.significance.hierarchical import BootstrapDraws
        from models.evaluation.sweep import SetDraws
        from models.evaluation.useb import PRECISION, whole

        found = [[whole(_parts(useb, encoder, config)[PRECISION]) for encoder in seeds] for seeds in systems]
        values = [np.array([score.value for score in seeds]) for seeds in found]
        draws = [np.stack([score.draws for score in seeds], axis=1) for seeds in found]
        drawn = tuple(map(BootstrapDraws, values, draws))
        return [SetDraws(useb.dataset, PRECISION, useb.name, drawn, useb.split, "useb", found[0][0].n)]

    @property
    def tables(self) -> tuple[PaperTable, ...]:
        """TSDAE's Table 1."""
        columns = tuple((dataset.name, dataset.heading) for dataset in USEB)
        return (PaperTable(title="USEB", columns=columns, metrics=("average precision",)),)


@stage(ref=ScoresRef, version=2)
def score_useb(
    context: StageContext,
    embeddings: EmbeddingsRef,
    model: str,
    checkpoint: str,
    sets: tuple[UsebSet, ...],
    config: BootstrapConfig,
) -> None:
    """Rank USEB's candidates for each query, and classify its pairs as paraphrases, by the cosine of embeddings."""
    figures = UsebKind().figures(sets, open_vectors(context.store, embeddings), ScoringConfig(bootstrap=config))
    publish_scores(context, figures, model, checkpoint, config.seed, f"USEB of {model}")


def _parts(useb: UsebSet, vectors: Vectors, config: BootstrapConfig) -> dict[str, dict[str, DrawnScore]]:
    """Return metric → part of a set → score."""
    from models.evaluation.useb import MEASURES, paraphrase_parts, ranking_parts

    table = rows_of(useb)[useb.split]
    parts = {str(name): rows for (name,), rows in table.group_by("subset", maintain_order=True)}
    if useb.dataset in MEASURES:
        rankings = {name: _rankings(rows, vectors, useb.name) for name, rows in parts.items()}
        return ranking_parts(useb.dataset, rankings, config)
    pairs = {name: (vectors.cosines(rows, useb.name), rows["votes"].to_numpy()) for name, rows in parts.items()}
    return paraphrase_parts(pairs, config)


def _rankings(rows: pl.DataFrame, vectors: Vectors, place: str) -> list[Ranking]:
    """Rank the documents for each query: its own candidates, or all documents if none is assigned to a query."""
    is_query = pl.col("document").is_null()
    queries, documents = rows.filter(is_query), rows.filter(~is_query)
    if documents["query"].null_count() == documents.height:
        return _from_pool(queries, documents, vectors, place)
    return _of_candidates(queries, documents, vectors, place)


def _of_candidates(queries: pl.DataFrame, documents: pl.DataFrame, vectors: Vectors, place: str) -> list[Ranking]:
    from models.evaluation.metrics import ranked

    texts = queries.select("query", sentence1="text", answers="relevant")
    pairs = documents.select("query", "document", sentence2="text").join(
        texts, on="query", how="inner", maintain_order="left"
    )
    scored = pairs.select(
        "query",
        cosine=pl.Series(vectors.cosines(pairs, place)),
        right=pl.col("document").is_in(pl.col("answers")),
        count=pl.col("answers").list.len(),
    )
    return [
        ranked(found["cosine"], found["right"], found["count"][0])
        for _, found in scored.group_by("query", maintain_order=True)
    ]


def _from_pool(queries: pl.DataFrame, documents: pl.DataFrame, vectors: Vectors, place: str) -> list[Ranking]:
    from models.evaluation.metrics import nearest, ranked
    from models.evaluation.useb import PLACES

    names = documents["document"].to_list()
    found = nearest(vectors.features(queries["text"], place), vectors.features(documents["text"], place), PLACES)
    return [
        ranked(cosines, [names[number] in answers for number in numbers], len(answers))
        for answers, (numbers, cosines) in zip(map(set, queries["relevant"].to_list()), found, strict=True)
    ]


def _split_name(name: str) -> tuple[str, str]:
    dataset, _, split = name.partition("/")
    return dataset, split or _TEST
