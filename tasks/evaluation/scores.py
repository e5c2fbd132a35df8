"""The one way to publish figures, and differences of figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from storage.schemas import COMPARISON, SCORES
from tasks.rendering.score_tables import difference_rows, score_rows
from tasks.stage.ui import show_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tasks.stage.cached import Work


def publish_scores(work: Work, rows: pl.DataFrame, model: str, checkpoint: str, seed: int, title: str) -> None:
    """Write a system's figures as the table `scores`, and show them.

    Args:
        work: of the stage that scored.
        rows: dataset, subset, split, metric, protocol, value, n, ci_low, ci_high, signature.
        model: what tables call the system.
        checkpoint: what identifies it.
        seed: of the draws, or of the training.
        title: of the table that people see.
    """
    named = rows.with_columns(model=pl.lit(model), seed=pl.lit(seed), checkpoint=pl.lit(checkpoint))
    scores = named.select(SCORES.names()).cast(SCORES)
    work.draft.write(scores)
    show_table(f"{work.draft.provenance.stage.replace('_', '-')}-table", score_rows(scores), title)


def publish_comparison(
    work: Work, rows: Sequence[Mapping[str, object]], names: tuple[str, str], seed: int, title: str
) -> None:
    """Write what a second system has more than a first, and show it.

    Args:
        work: of the stage that compared.
        rows: the columns of a comparison but for the systems and the seed.
        names: what tables call the systems.
        seed: of the draws.
        title: of the table that people see.
    """
    table = pl.DataFrame(rows).with_columns(model=pl.lit(names[1]), reference=pl.lit(names[0]), seed=pl.lit(seed))
    comparison = table.select(COMPARISON.names()).cast(COMPARISON)
    work.draft.write(comparison)
    show_table("comparison-table", difference_rows(comparison), title)
