"""An example evaluation kind that the project lacks: the accuracy of finding a sentence's paraphrase."""

from collections.abc import Mapping
from typing import Final

import numpy as np
import polars as pl

from models.evaluation.config import ScoringConfig
from storage.artifacts.refs import EmbeddingsRef, ScoresRef
from storage.assets.embedded import embedded_path
from tasks.corpus.evaluation_sets import EvaluationSet, rows_of
from tasks.embedding.vectors import Vectors, open_vectors
from tasks.evaluation.kind import FrozenKind, digests, publish_scores, signed
from tasks.evaluation.systems import System
from tasks.rendering.paper_tables import PaperTable
from tasks.stage.cached import StageContext, stage
from tasks.stage.run_context import RunContext

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

    @property
    def suites(self) -> Mapping[str, tuple[str, ...]]:
        return {TOY: (TOY,)}

    def find(self, site: RunContext, name: str) -> Paraphrases:
        return Paraphrases()

    def scores(self, site: RunContext, system: System, sets: tuple[Paraphrases, ...], config: ScoringConfig):
        return [score_paraphrases(site, system.embeddings, system.label, system.checkpoint, sets)]

    def figures(self, sets: tuple[Paraphrases, ...], vectors: Vectors, config: ScoringConfig, device: str = "cpu"):
        return paraphrase_figures(sets, vectors)

    @property
    def tables(self) -> tuple[PaperTable, ...]:
        return (PaperTable(title="Paraphrases found", columns=((TOY, "Found"),), metrics=("accuracy",)),)


@stage(ref=ScoresRef, version=1)
def score_paraphrases(
    context: StageContext, embeddings: EmbeddingsRef, model: str, checkpoint: str, sets: tuple[Paraphrases, ...]
) -> None:
    """The example's own cached stage."""
    figures = paraphrase_figures(sets, open_vectors(context.store, embeddings))
    publish_scores(context, figures, model, checkpoint, 0, f"Paraphrases found by {model}")


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
    return signed(figures, digests(figures, sets), vectors.computation, by="neighbour")
