"""Scores of one or more encoders to one page: the papers' tables, the differences, and what could not be scored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import polars as pl
from pydantic import BaseModel, ConfigDict

from models.report.evaluation import evaluation_page
from models.report.tables import PaperTable
from storage.artifacts.keys import NotInKey
from storage.artifacts.refs import ComparisonRef, EvaluationRef, ScoresRef
from tasks.stage.cached import Work, stage
from tasks.stage.ui import show_markdown

if TYPE_CHECKING:
    from collections.abc import Mapping

PAGE = "evaluation.md"


class Missing(BaseModel):
    """Sets that were asked for and could not be had."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    names: tuple[str, ...] = ()
    """As asked for."""
    reasons: Annotated[dict[str, str], NotInKey] = {}
    """Name → why, and what to do."""

    @classmethod
    def of(cls, reasons: Mapping[str, str]) -> Missing:
        """From name → why."""
        return cls(names=tuple(reasons), reasons=dict(reasons))


@stage(ref=EvaluationRef, version=4)
def summarise(
    work: Work,
    scores: tuple[ScoresRef, ...],
    comparisons: tuple[ComparisonRef, ...],
    missing: Missing,
    tables: tuple[PaperTable, ...],
) -> None:
    """Write the page, and the figures below each other; `tables` says how the papers print them."""
    table = pl.concat([work.store.scan(ref).collect() for ref in scores])
    work.draft.write(table, "scores")
    compared = [work.store.scan(ref).collect() for ref in comparisons]
    if compared:
        work.draft.write(pl.concat(compared), "comparison")
    page = evaluation_page(table, pl.concat(compared) if compared else None, missing.reasons, tables)
    (work.draft.folder / PAGE).write_text(page, encoding="utf-8")
    show_markdown("evaluation", page, f"Evaluation {work.ref.key[:12]}")
