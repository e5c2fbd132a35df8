"""Semantic textual similarity (STS): correlation of the cosine of each pair with its gold score."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, ClassVar, Final

import polars as pl

from bsl.models.errors import EvaluationError
from bsl.storage.assets.embedded import EMBEDDED
from bsl.storage.datasets.registry import DATASETS, pairs_of, suites_of
from bsl.tasks.corpus.evaluation_sets import ScoredSet, is_scored_set, read_scored_set, resolve_scored_set
from bsl.tasks.evaluation.kind import FrozenKind, digests, with_signatures
from bsl.tasks.rendering.paper_tables import PaperTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from bsl.models.evaluation.config import BootstrapConfig, ScoringConfig
    from bsl.models.evaluation.sweep import SetDraws
    from bsl.tasks.embedding.vectors import Vectors
    from bsl.tasks.stage.run_context import RunContext

logger = logging.getLogger(__name__)

_TITLES: Final = {
    "sts": "Semantic textual similarity (STS13 without SMT)",
    "sts-tok": "Semantic textual similarity, text as SentEval tokenises it",
    "sts17-bsl": "STS 2017, the eight tracks of BSL's Table 3",
    "sts17-other": "STS 2017, other tracks",
}
"""Suite → title of its table."""
_MEMBERS: Final = suites_of(dataset for dataset in DATASETS.values() if dataset.score_range)


class StsKind(FrozenKind[ScoredSet]):
    """Sets of pairs with gold scores."""

    title = "Semantic textual similarity"
    suites: ClassVar = {
        suite: tuple(f"{dataset.name}/test" for dataset in members) for suite, members in _MEMBERS.items()
    }
    tables = tuple(
        PaperTable(
            title=title,
            columns=tuple((dataset.name, dataset.heading) for dataset in _MEMBERS[suite]),
            metrics=("spearman", "pearson"),
            undivided=tuple(dataset.name for dataset in _MEMBERS[suite] if not dataset.divided),
        )
        for suite, title in _TITLES.items()
    )

    def knows(self, name: str) -> bool:
        """Return whether the name is a split of a declared dataset of scored pairs."""
        return is_scored_set(name)

    def find(self, site: RunContext, name: str) -> ScoredSet:
        """Find a set; see `resolve_scored_set`."""
        return resolve_scored_set(site, name)

    def whole(self, name: str) -> tuple[str, ...]:
        """Return every declared split of the dataset."""
        dataset, _, _ = name.rpartition("/")
        return tuple(f"{dataset}/{split}" for split in DATASETS[dataset.removeprefix(EMBEDDED)].splits)

    def figures(
        self,
        sets: tuple[ScoredSet, ...],
        vectors: Vectors,
        config: ScoringConfig,
        device: str = "cpu",  # noqa: ARG002 - correlations need none
    ) -> pl.DataFrame:
        """Return both correlations under the three protocols.

        For sparse vectors, a set in which no pair shares a known word gets no score.
        """
        from bsl.models.evaluation.signature import ScoreRow
        from bsl.models.evaluation.sts import sts_scores

        figures, drawn = [], config.bootstrap
        for scored in sets:
            cosines = cosines_of(vectors, scored)
            if vectors.is_sparse and not cosines.any():
                # For example TF-IDF of an English corpus on Arabic: all cosines are 0, so no correlation is defined.
                logger.warning("%s: no pair shares a word of the corpus, so %s has no score", scored.name, vectors.name)
                continue
            rows = read_scored_set(scored).select("subset", gold="score", cosine=pl.Series(cosines))
            if (unit_N := units_of(scored)) is not None:
                rows = rows.with_columns(unit=unit_N)
            place = {"dataset": scored.dataset, "split": scored.split}
            figures += sts_scores(rows, **place, resamples=drawn.resamples, seed=drawn.seed)
        table = pl.DataFrame([asdict(figure) for figure in figures], schema=[field.name for field in fields(ScoreRow)])
        return with_signatures(table, digests(table, sets), vectors.computation, by="cosine")

    def draws(self, scored: ScoredSet, systems: Sequence[Sequence[Vectors]], config: BootstrapConfig) -> list[SetDraws]:
        """Return Spearman's ρ of each system on the same draws of the pairs."""
        import numpy as np

        from bsl.models.evaluation.significance.hierarchical import draws_of
        from bsl.models.evaluation.sweep import SetDraws

        gold, drawn = read_scored_set(scored)["score"].to_numpy(), []
        for seeds in systems:
            cosines_SN = np.stack([cosines_of(encoder, scored) for encoder in seeds])
            with _named(f"{scored.name}, {seeds[0].name} (first scores = gold, second = cosine)"):
                drawn.append(
                    draws_of(gold, cosines_SN, resamples=config.resamples, seed=config.seed, unit_N=units_of(scored))
                )
        # Raw and tokenised text of the same pairs count as one set in a mean.
        group = f"{pairs_of(scored.dataset)} {scored.split}"
        return [SetDraws(scored.dataset, "spearman", group, tuple(drawn), split=scored.split, n=len(gold))]


def units_of(scored: ScoredSet) -> NDArray[np.int64] | None:
    """Return the number of each row's pair in its subset, (n,), if all subsets have the same pairs; else None."""
    if not DATASETS[scored.dataset].parallel:
        return None
    numbers = read_scored_set(scored).select(pl.int_range(pl.len()).over("subset")).to_series()
    return numbers.cast(pl.Int64).to_numpy()


def cosines_of(vectors: Vectors, scored: ScoredSet) -> NDArray[np.float64]:
    """Return the cosine of the two sentences of each pair, shape (n,).

    Raises:
        EvaluationError: The cosines cannot be computed; the message names set and system.
    """
    with _named(f"{scored.name}, {vectors.name}"):
        return vectors.cosines(read_scored_set(scored), scored.name)


@contextmanager
def _named(place: str) -> Iterator[None]:
    """Prefix evaluation errors with the name of the scored set and system."""
    try:
        yield
    except EvaluationError as error:
        raise EvaluationError(f"{place}: {error}") from error
