"""The page of an evaluation: the papers' tables, every figure with its interval, differences, what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from models.report.page import INTERVALS, differences, markdown_table, not_scored, printed, score_rows, signatures

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import polars as pl

    from models.report.tables import PaperTable


def evaluation_page(
    scores: pl.DataFrame, comparison: pl.DataFrame | None, missing: Mapping[str, str], tables: Iterable[PaperTable]
) -> str:
    """The page as GitHub-flavoured Markdown."""
    sections = ["# Evaluation", *printed(scores, tables)]
    sections.append(f"## {INTERVALS}\n\n{markdown_table(score_rows(scores))}")
    sections += [*differences(comparison), *not_scored(missing), signatures(scores)]
    return "\n\n".join(sections) + "\n"
