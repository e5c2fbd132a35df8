"""Embeddings, or the corpus itself for TF-IDF, to figures with their uncertainty."""

from dataclasses import asdict

import numpy as np
import polars as pl

from models.evaluation.config import BootstrapConfig
from models.text.normalize import sentence_ids
from storage.refs import CorpusRef, EmbeddingsRef, ScoresRef
from storage.schemas import SCORES
from tasks.cached import Work, stage
from tasks.resolve import ScoredSet, read_scored_set
from tasks.show import show_table


@stage(ref=ScoresRef, version=1)
def score(
    work: Work,
    embeddings: EmbeddingsRef,
    model: str,
    checkpoint: str,
    sets: tuple[ScoredSet, ...],
    config: BootstrapConfig,
) -> None:
    """Correlate the cosine of each pair's embeddings with its gold score."""
    from models.evaluation.correlation import cosine_scores

    vectors = work.store.scan(embeddings).collect()
    table = vectors["embedding"].to_numpy()
    rows_of = dict(zip(vectors["sentence_id"].to_list(), range(vectors.height), strict=True))
    tables = []
    for scored in sets:
        pairs = read_scored_set(scored)
        one, two = (_lookup(rows_of, pairs[column]) for column in ("sentence1", "sentence2"))
        tables.append(_figures(scored, pairs, cosine_scores(table[one], table[two]), config))
    _publish(work, tables, model, checkpoint, config)


@stage(ref=ScoresRef, version=1)
def score_tfidf(work: Work, corpus: CorpusRef, sets: tuple[ScoredSet, ...], config: BootstrapConfig) -> None:
    """Score the unigram TF-IDF baseline, fitted on the corpus that the encoder was trained on."""
    from models.baselines.tfidf import tfidf_scores

    sentences = work.store.scan(corpus).select("text").collect()["text"].to_list()
    tables = []
    for scored in sets:
        pairs = read_scored_set(scored)
        cosine = tfidf_scores(sentences, pairs["sentence1"].to_list(), pairs["sentence2"].to_list())
        tables.append(_figures(scored, pairs, cosine, config))
    _publish(work, tables, "Unigram TF-IDF", "", config)


def _lookup(rows_of: dict[int, int], texts: pl.Series) -> list[int]:
    ids = texts.to_frame("text").select(sentence_ids(pl.col("text"))).to_series()
    return [rows_of[sentence] for sentence in ids.to_list()]


def _figures(
    scored: ScoredSet,
    pairs: pl.DataFrame,
    cosine: np.ndarray[tuple[int], np.dtype[np.float64]],
    config: BootstrapConfig,
) -> pl.DataFrame:
    from models.evaluation.sts import sts_scores

    rows = pairs.select("subset", gold="score", cosine=pl.Series(cosine))
    figures = sts_scores(rows, dataset=scored.dataset, split=scored.split, resamples=config.resamples, seed=config.seed)
    return pl.DataFrame([asdict(figure) for figure in figures])


def _publish(work: Work, tables: list[pl.DataFrame], model: str, checkpoint: str, config: BootstrapConfig) -> None:
    named = pl.concat(tables).with_columns(model=pl.lit(model), seed=pl.lit(config.seed), checkpoint=pl.lit(checkpoint))
    scores = named.select(SCORES.names()).cast(SCORES)
    work.draft.write(scores)
    show_table("score-table", scores.to_dicts(), f"Scores of {model}")
