"""Embeddings, or the corpus itself for TF-IDF, to figures with their uncertainty."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

import polars as pl

from models.errors import EvaluationError
from models.evaluation.bootstrap import BootstrapConfig
from storage.refs import ComparisonRef, CorpusRef, EmbeddingsRef, ScoresRef
from storage.schemas import COMPARISON, SCORES
from tasks.evaluation.sets import ScoredSet, read_scored_set
from tasks.evaluation.vectors import Vectors, open_vectors
from tasks.stage.cached import Work, stage
from tasks.stage.show import show_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray


@stage(ref=ScoresRef, version=2)
def score(
    work: Work,
    embeddings: EmbeddingsRef,
    model: str,
    checkpoint: str,
    sets: tuple[ScoredSet, ...],
    config: BootstrapConfig,
) -> None:
    """Correlate the cosine of each pair's embeddings with its gold score."""
    vectors = open_vectors(work.store, embeddings)
    tables = [_figures(scored, _cosines(vectors, scored), config) for scored in sets]
    _publish(work, tables, model, checkpoint, config)


@stage(ref=ScoresRef, version=2)
def score_tfidf(work: Work, corpus: CorpusRef, sets: tuple[ScoredSet, ...], config: BootstrapConfig) -> None:
    """Score the unigram TF-IDF baseline, fitted on the corpus that the encoder was trained on."""
    from models.baselines.tfidf import tfidf_scores

    sentences = work.store.scan(corpus).select("text").collect()["text"].to_list()
    tables = []
    for scored in sets:
        pairs = read_scored_set(scored)
        cosine = tfidf_scores(sentences, pairs["sentence1"].to_list(), pairs["sentence2"].to_list())
        tables.append(_figures(scored, cosine, config))
    _publish(work, tables, "Unigram TF-IDF", "", config)


@stage(ref=ComparisonRef, version=1)
def compare(
    work: Work,
    first: EmbeddingsRef,
    second: EmbeddingsRef,
    names: tuple[str, str],
    sets: tuple[ScoredSet, ...],
    config: BootstrapConfig,
) -> None:
    """TwoBranch the difference of two encoders on each set, both on the same draws of its pairs."""
    from models.evaluation.paired import paired_difference

    one, two = (open_vectors(work.store, each) for each in (first, second))
    rows = []
    for scored in sets:
        gold, cosines = read_scored_set(scored)["score"].to_numpy(), (_cosines(one, scored), _cosines(two, scored))
        place = {"dataset": scored.dataset, "subset": "all", "split": scored.split, "protocol": "all", "n": len(gold)}
        for metric in ("spearman", "pearson"):
            with _named(f"{scored.name}, {names[1]} beside {names[0]} (first scores = gold, second = cosine)"):
                found = paired_difference(*cosines, gold, metric=metric, resamples=config.resamples, seed=config.seed)
            rows.append({**place, "metric": metric, **asdict(found)})
    table = pl.DataFrame(rows).with_columns(
        model=pl.lit(names[1]), reference=pl.lit(names[0]), seed=pl.lit(config.seed)
    )
    comparison = table.select(COMPARISON.names()).cast(COMPARISON)
    work.draft.write(comparison)
    show_table("comparison-table", comparison.to_dicts(), f"{names[1]} less {names[0]}")


def _cosines(vectors: Vectors, scored: ScoredSet) -> "NDArray[np.float64]":
    """Cosine of the two sentences of each pair, (n,)."""
    from models.evaluation.correlation import cosine_scores

    pairs = read_scored_set(scored)
    sides = [vectors.of(pairs[side], scored.name) for side in ("sentence1", "sentence2")]
    with _named(f"{scored.name}, {vectors.name}"):
        return cosine_scores(*sides)


@contextmanager
def _named(place: str) -> Iterator[None]:
    """Say in errors what was scored."""
    try:
        yield
    except EvaluationError as error:
        raise EvaluationError(f"{place}: {error}") from error


def _figures(scored: ScoredSet, cosine: "NDArray[np.float64]", config: BootstrapConfig) -> pl.DataFrame:
    from models.evaluation.sts import sts_scores

    rows = read_scored_set(scored).select("subset", gold="score", cosine=pl.Series(cosine))
    figures = sts_scores(rows, dataset=scored.dataset, split=scored.split, resamples=config.resamples, seed=config.seed)
    return pl.DataFrame([asdict(figure) for figure in figures])


def _publish(
    work: Work, tables: "Sequence[pl.DataFrame]", model: str, checkpoint: str, config: BootstrapConfig
) -> None:
    named = pl.concat(tables).with_columns(model=pl.lit(model), seed=pl.lit(config.seed), checkpoint=pl.lit(checkpoint))
    scores = named.select(SCORES.names()).cast(SCORES)
    work.draft.write(scores)
    show_table("score-table", scores.to_dicts(), f"Scores of {model}")
