"""The one way to publish figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from models.report.page import score_rows
from storage.schemas import SCORES
from tasks.stage.show import show_table

if TYPE_CHECKING:
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
