"""An example evaluation kind that the project lacks: the accuracy of finding a sentence's paraphrase."""

from collections.abc import Mapping
from typing import Final

import numpy as np
import polars as pl

from bsl.models.evaluation.config import ScoringConfig
from bsl.storage.assets.embedded import embedded_path
from bsl.tasks.corpus.evaluation_sets import EvaluationSet, rows_of
from bsl.tasks.embedding.vectors import Vectors
from bsl.tasks.evaluation.kind import FrozenKind, digests, with_signatures
from bsl.tasks.rendering.paper_tables import PaperTable
from bsl.tasks.stage.run_context import RunContext

TOY: Final = "paraphrases"
READ: Final[list[str]] = []
"""The sets read from disk, in order."""


class Paraphrases(EvaluationSet):
    """Pairs of STS-B dev with equal meaning."""

    dataset: str = TOY

    def read(self) -> Mapping[str, pl.DataFrame]:
        READ.append(self.dataset)
        pairs = pl.read_parquet(embedded_path("stsb") / "dev.parquet")
        return {"dev": pairs.filter(pl.col("score") == 5).select("sentence1", "sentence2").head(20)}


class ParaphraseKind(FrozenKind[Paraphrases]):
    """Accuracy of the nearest neighbour."""

    title = "Paraphrases"

    @property
    def suites(self) -> Mapping[str, tuple[str, ...]]:
        return {TOY: (TOY,)}

    def find(self, site: RunContext, name: str) -> Paraphrases:
        return Paraphrases()

    def figures(self, sets: tuple[Paraphrases, ...], vectors: Vectors, config: ScoringConfig, device: str = "cpu"):
        return paraphrase_figures(sets, vectors)

    @property
    def tables(self) -> tuple[PaperTable, ...]:
        return (PaperTable(title="Paraphrases found", columns=((TOY, "Found"),), metrics=("accuracy",)),)


def paraphrase_figures(sets: tuple[Paraphrases, ...], vectors: Vectors) -> pl.DataFrame:
    rows = []
    for wanted in sets:
        pairs = rows_of(wanted)["dev"]
        count = pairs.height
        all_pairs = pl.DataFrame(
            {
                "sentence1": [text for text in pairs["sentence1"] for _ in range(count)],
                "sentence2": pairs["sentence2"].to_list() * count,
            }
        )
        nearest = vectors.cosines(all_pairs, wanted.dataset).reshape(count, count).argmax(axis=1)
        value = float((nearest == np.arange(count)).mean())
        rows.append({"dataset": wanted.dataset, "subset": "all", "split": "test", "metric": "accuracy"})
        rows[-1] |= {"protocol": "nearest", "value": value, "n": count, "ci_low": None, "ci_high": None}
    figures = pl.DataFrame(rows)
    return with_signatures(figures, digests(figures, sets), vectors.computation, by="neighbour")
