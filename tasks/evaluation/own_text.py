"""The proofs by which methods are compared: held-out text, labels, and sets on which nothing should be lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from models.own_labels import FOLDS, JUDGE, TEACH
from tasks.corpus.evaluation_sets import ScoredSet, read_scored_set
from tasks.embedding.vectors import open_vectors
from tasks.evaluation.own_text_sets import known_labels
from tasks.evaluation.sts import cosines_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from models.evaluation.bootstrap import BootstrapConfig
    from models.evaluation.retrieval import Retrieval
    from models.evaluation.sweep import SetDraws
    from storage.artifacts.refs import EmbeddingsRef, PassagesRef
    from storage.artifacts.store import Store
    from storage.sources.labels import LabelSource
    from tasks.embedding.vectors import Vectors


def text_proofs(
    found: Mapping[str, Retrieval], vectors: Sequence[Sequence[Vectors]], learnt: Sequence[str], config: BootstrapConfig
) -> Iterator[SetDraws]:
    """How well methods find what belongs together in held-out text.

    Args:
        found: probes by name.
        vectors: of each method, a seed each.
        learnt: probes that are made as some method's views are, so that they decide nothing.
        config: how differences are drawn.
    """
    from models.evaluation.sweep import SetDraws, outcome_draws

    for name, probe in found.items():
        ranks = [np.stack([_ranks(encoder, probe) for encoder in seeds]) for seeds in vectors]
        draws = outcome_draws(ranks, probe.unit, resamples=config.resamples, seed=config.seed)
        yield SetDraws(name, "mean reciprocal rank", "" if name in learnt else "text", draws)


def _ranks(encoder: Vectors, probe: Retrieval) -> NDArray[np.float64]:
    from models.evaluation.retrieval import reciprocal_ranks

    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        rows = encoder.features(pl.Series(texts), probe.name)
        return rows if isinstance(rows, np.ndarray) else rows.toarray().astype(np.float32)

    return reciprocal_ranks(encode, probe)


def label_proofs(
    store: Store,
    passages: PassagesRef,
    labels: LabelSource | None,
    vectors: Sequence[Sequence[Vectors]],
    config: BootstrapConfig,
) -> Iterator[SetDraws]:
    """What labels say of methods: right answers of the exact classifier, or the order of scored pairs; none without."""
    from models.evaluation.hierarchical import draws_of
    from models.evaluation.sweep import SetDraws, outcome_draws

    if labels is None:
        return
    rows = known_labels(store, passages, labels)
    seed = config.seed + 100
    if labels.kind == "classes":
        right = [np.stack([_right(encoder, rows) for encoder in seeds]) for seeds in vectors]
        draws = outcome_draws(right, np.arange(right[0].shape[1]), resamples=config.resamples, seed=seed)
        yield SetDraws("your labels", "accuracy", "labels", draws)
        return
    judging = rows.filter(part=JUDGE)
    gold = judging["score"].to_numpy()
    pairs = judging.rename({"text_1": "sentence1", "text_2": "sentence2"})
    cosines = [np.stack([encoder.cosines(pairs, "labels") for encoder in seeds]) for seeds in vectors]
    correlations = tuple(draws_of(gold, own, resamples=config.resamples, seed=seed) for own in cosines)
    yield SetDraws("your labels", "spearman", "labels", correlations)


def _right(encoder: Vectors, rows: pl.DataFrame) -> NDArray[np.float64]:
    """Whether the exact linear classifier, fitted on the other texts, classes each judging text right: (N,)."""
    from models.evaluation.probe.config import ProbeConfig
    from models.evaluation.probe.problem import Part, make_problem
    from models.evaluation.probe.search import probe

    parts = {}
    for split, own in (("train", rows.filter(part=TEACH)), ("test", rows.filter(part=JUDGE))):
        features, classes = encoder.features(own["text_1"], f"labels, {split}"), own["class"].to_numpy()
        parts[split] = Part(features, classes, np.arange(own.height))
    config = ProbeConfig(protocols=("fast",), folds=FOLDS)
    names = tuple(map(str, range(rows["class"].n_unique())))
    problem = make_problem("your labels", "kfold", parts, names, folds=config.folds, seed=config.seed)
    ((outcome,),) = probe([problem], "fast", config)
    return outcome.right.astype(np.float64)


def checks_of(
    store: Store,
    checked: Sequence[Sequence[EmbeddingsRef]],
    checks: tuple[ScoredSet, ...],
    config: BootstrapConfig,
) -> Iterator[SetDraws]:
    """Scored pairs on which nothing should be lost."""
    from models.evaluation.hierarchical import draws_of
    from models.evaluation.sweep import SetDraws

    vectors = [[open_vectors(store, ref) for ref in seeds] for seeds in checked]
    for number, scored in enumerate(checks):
        gold = read_scored_set(scored)["score"].to_numpy()
        draws = [
            draws_of(
                gold,
                np.stack([cosines_of(encoder, scored) for encoder in seeds]),
                resamples=config.resamples,
                seed=config.seed + 200 + number,
            )
            for seeds in vectors
        ]
        yield SetDraws(scored.name, "spearman", "", tuple(draws))
