"""The page of an evaluation: scores of encoders, the papers' tables, differences, and missing sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import polars as pl
from pydantic import Field

from storage.artifacts.refs import ComparisonRef, EvaluationRef, ScoresRef
from storage.record import NotInKey, Record
from tasks.rendering.blocks import Page, Part, Table
from tasks.rendering.paper_tables import PaperTable, tables_of
from tasks.rendering.score_tables import INTERVALS, difference_rows, missing_sets, score_rows, signatures
from tasks.reporting.publish import publish
from tasks.stage.cached import StageContext, stage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_COMPARED: Final = "Differences × 100 on the same bootstrap draws, with 95 % interval and p"


class Missing(Record):
    """Requested sets that were not found."""

    names: tuple[str, ...] = ()
    """Names, as requested."""
    reasons: Annotated[dict[str, str], NotInKey] = Field(default_factory=dict)
    """Name → reason and remedy."""

    @classmethod
    def of(cls, reasons: Mapping[str, str]) -> Missing:
        """Return the sets of a mapping name → reason."""
        return cls(names=tuple(reasons), reasons=dict(reasons))


@stage(ref=EvaluationRef, version=7)
def summarise(
    context: StageContext,
    scores: tuple[ScoresRef, ...],
    comparisons: tuple[ComparisonRef, ...],
    missing: Missing,
    tables: tuple[PaperTable, ...],
) -> None:
    """Publish the page, and the scores of all systems as one table; `tables` are the layouts of the papers."""
    table = pl.concat([context.store.scan(ref).collect() for ref in scores])
    comparison = write_figures(context, table, comparisons)
    context.draft.note({"missing": {**missing.reasons}})
    publish(context, evaluation_page(table, comparison, missing.reasons, tables))


def write_figures(
    context: StageContext, scores: pl.DataFrame, comparisons: Sequence[ComparisonRef]
) -> pl.DataFrame | None:
    """Write the tables `scores` and `comparison` of a report; return the table `comparison`, None without one."""
    context.draft.write(scores, "scores")
    compared = [context.store.scan(ref).collect() for ref in comparisons]
    if not compared:
        return None
    comparison = pl.concat(compared)
    context.draft.write(comparison, "comparison")
    return comparison


def evaluation_page(
    scores: pl.DataFrame, comparison: pl.DataFrame | None, missing: Mapping[str, str], tables: Iterable[PaperTable]
) -> Page:
    """Return the page: a chart of the systems, the papers' tables, all figures, differences, missing sets."""
    from tasks.rendering.charts import system_chart  # matplotlib

    parts = [
        Part("Tables of the papers", list(tables_of(scores, tuple(tables), [], ""))),
        Part("Scores", [Table.of(INTERVALS, score_rows(scores))]),
        difference_part(comparison),
        Part("Missing", [missing_sets(missing)] if missing else []),
        Part("Signatures", [signatures(scores)]),
    ]
    return Page.of_result("Evaluation", [], system_chart(scores), parts)


def difference_part(comparison: pl.DataFrame | None) -> Part:
    """Return the section of differences between systems; empty without the table `comparison`."""
    return Part("Differences", [] if comparison is None else [Table.of(_COMPARED, difference_rows(comparison))])
