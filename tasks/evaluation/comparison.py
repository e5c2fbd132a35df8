"""Differences between two systems, on the sets of every kind with draws."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import polars as pl

from bsl.models.evaluation.config import BootstrapConfig
from bsl.storage.artifacts.refs import ComparisonRef, EmbeddingsRef
from bsl.storage.artifacts.schemas import COMPARED, COMPARISON, COSINES
from bsl.tasks.corpus.evaluation_sets import EvaluationSet, ScoredSet
from bsl.tasks.embedding.vectors import open_vectors
from bsl.tasks.evaluation.kind import DRAWS_VERSION
from bsl.tasks.evaluation.kinds import draws_of_sets, have_mean, with_offsets
from bsl.tasks.evaluation.sts import cosines_of
from bsl.tasks.rendering.score_tables import difference_table
from bsl.tasks.stage.cached import StageContext, stage
from bsl.tasks.stage.ui import show

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bsl.models.evaluation.sweep import SetDraws
    from bsl.storage.artifacts.store import Store
    from bsl.tasks.embedding.vectors import Vectors


@stage(ref=ComparisonRef, version=7 + DRAWS_VERSION)
def compare(
    context: StageContext,
    first: EmbeddingsRef,
    second: EmbeddingsRef,
    names: tuple[str, str],
    sets: dict[str, EvaluationSet],
    config: BootstrapConfig,
) -> None:
    """Bootstrap the difference of two systems on each set and on the mean of the test sets, on the same draws.

    The artifact also has the figures of both systems, and their cosines of all scored pairs.
    """
    drawn = paired_draws(context.store, (first, second), sets, config)
    table = pl.DataFrame([_row(found) for found in drawn]).with_columns(
        model=pl.lit(names[1]), reference=pl.lit(names[0]), subset=pl.lit("all"), seed=pl.lit(config.seed)
    )
    comparison = table.select(COMPARISON.names()).cast(COMPARISON)
    context.draft.write(comparison)
    context.draft.write(_figures(drawn, names), "compared")
    systems = [(name, open_vectors(context.store, ref)) for name, ref in zip(names, (first, second), strict=True)]
    scored = [one for one in sets.values() if isinstance(one, ScoredSet)]
    tables = [_cosines(one, name, vectors) for one in scored for name, vectors in systems]
    context.draft.write(pl.concat([pl.DataFrame(schema=COSINES), *tables]), "cosines")
    show(difference_table(comparison, config.resamples))


def _figures(drawn: list[SetDraws], names: tuple[str, str]) -> pl.DataFrame:
    """Return the figure of each system on each set, with its interval."""
    from bsl.models.evaluation.significance.hierarchical import figure_of

    rows = []
    for found in drawn:
        for name, system in zip(names, found.systems, strict=True):
            figure = figure_of(system)
            ends = {"value": figure.mean, "n": found.n, "ci_low": figure.ci_low, "ci_high": figure.ci_high}
            rows.append({"model": name, **_place(found), "subset": "all", **ends})
    return pl.DataFrame(rows).select(COMPARED.names()).cast(COMPARED)


def _cosines(scored: ScoredSet, model: str, vectors: Vectors) -> pl.DataFrame:
    place = {"model": pl.lit(model), "dataset": pl.lit(scored.dataset), "split": pl.lit(scored.split)}
    table = pl.DataFrame({"cosine": cosines_of(vectors, scored)}).with_row_index("row").with_columns(**place)
    return table.select(COSINES.names())


def _place(found: SetDraws) -> dict[str, object]:
    return {"dataset": found.dataset, "split": found.split, "metric": found.metric, "protocol": found.protocol}


def _row(found: SetDraws) -> dict[str, object]:
    """Return the difference of the second system from the first on a set."""
    from bsl.models.evaluation.significance.hierarchical import difference_of

    return {**_place(found), "n": found.n, **asdict(difference_of(*found.systems))}


def paired_draws(
    store: Store, pair: tuple[EmbeddingsRef, EmbeddingsRef], sets: Mapping[str, EvaluationSet], config: BootstrapConfig
) -> list[SetDraws]:
    """Return both systems' draws of each set and, if there are several test sets, of their mean."""
    from bsl.models.evaluation.sweep import mean_of

    systems = [[open_vectors(store, vectors)] for vectors in pair]
    drawn = draws_of_sets([(name, evaluation_set, 0) for name, evaluation_set in sets.items()], systems, config)
    tests = {name: scored for name, scored in sets.items() if isinstance(scored, ScoredSet) and scored.split == "test"}
    independent = draws_of_sets(with_offsets(tests), systems, config) if len(tests) > 1 else []
    if have_mean(independent):
        drawn.append(replace(mean_of(independent, metric="spearman"), split="test"))
    return drawn
