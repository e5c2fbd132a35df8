"""Kind `toy`: a pair's cosine minus the cosine of its first sentence with a neighbouring pair's second sentence."""

from collections.abc import Mapping
from typing import ClassVar

import polars as pl

from bsl.models.evaluation.config import ScoringConfig
from bsl.storage.sources.sources import ResolvedSource, SourceSpec, resolve_source
from bsl.tasks.corpus.evaluation_sets import EvaluationSet, rows_of
from bsl.tasks.embedding.vectors import Vectors
from bsl.tasks.evaluation.kind import FrozenKind, digests, with_signatures
from bsl.tasks.rendering.paper_tables import PaperTable
from bsl.tasks.stage.run_context import RunContext


class ToySet(EvaluationSet):
    source: ResolvedSource

    def read(self) -> Mapping[str, pl.DataFrame]:
        return {"test": pl.read_parquet(self.source.files[0]).head(40)}


class ToyKind(FrozenKind[ToySet]):
    title = "Toys"
    suites: ClassVar = {"toys": ("toy",)}
    tables = (PaperTable(title="Toys", columns=(("toy", "TOY"),), metrics=("margin",)),)

    def find(self, site: RunContext, name: str) -> ToySet:
        return ToySet(dataset=name, source=resolve_source(SourceSpec(dataset="embedded:stsb", split="test")))

    def figures(
        self, sets: tuple[ToySet, ...], vectors: Vectors, config: ScoringConfig, device: str = "cpu"
    ) -> pl.DataFrame:
        return margins(sets, vectors)


def margins(sets: tuple[ToySet, ...], vectors: Vectors) -> pl.DataFrame:
    pairs = rows_of(sets[0])["test"]
    others = pairs.with_columns(pl.col("sentence2").shift(1, fill_value=pairs["sentence2"][-1]))
    margin = float((vectors.cosines(pairs, "toy") - vectors.cosines(others, "toy")).mean())
    place = {"dataset": "toy", "subset": "all", "split": "test", "metric": "margin", "protocol": "toy"}
    figures = pl.DataFrame([place | {"value": margin, "n": pairs.height, "ci_low": margin, "ci_high": margin}])
    return with_signatures(figures, digests(figures, sets), vectors.computation, by="margin")
