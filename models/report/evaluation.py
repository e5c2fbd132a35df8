"""The page of an evaluation: the papers' tables, every figure with its interval, differences, what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from models.report.page import differences, interval, markdown_table, not_scored
from models.report.tables import paper_tables

if TYPE_CHECKING:
    from collections.abc import Mapping

INTERVALS = "Every figure × 100 with its 95 % interval"
PLACE = ("dataset", "split", "metric", "protocol")


def evaluation_page(scores: pl.DataFrame, comparison: pl.DataFrame | None, missing: Mapping[str, str]) -> str:
    """The page as GitHub-flavoured Markdown."""
    sections = ["# Evaluation"]
    sections += [f"## {title}\n\n{markdown_table(rows)}" for title, rows in paper_tables(scores)]
    sections.append(f"## {INTERVALS}\n\n{markdown_table(interval_rows(scores))}")
    if comparison is not None:
        sections.append(differences(comparison))
    sections += not_scored(missing)
    return "\n\n".join(sections) + "\n"


def interval_rows(scores: pl.DataFrame) -> list[dict[str, str]]:
    """One row a data set's figure, one column a system: `value × 100 [low, high]`."""
    whole = pl.col("subset").is_in(["all", "mean"]) & ~pl.col("protocol").is_in(["mean", "wmean"])
    # Pearson is reported beside Spearman on AFS alone.
    chosen = scores.filter(whole & ((pl.col("metric") != "pearson") | (pl.col("dataset") == "afs")))
    systems = chosen["model"].unique(maintain_order=True).to_list()
    rows = []
    for place in chosen.select(*PLACE).unique(maintain_order=True).iter_rows(named=True):
        figures = {row["model"]: interval(row) for row in chosen.filter(**place).iter_rows(named=True)}
        name = f"{place['dataset']} {place['split']}: {place['metric']}, {place['protocol']}"
        rows.append({"figure": name, **{str(system): figures.get(system, "missing") for system in systems}})
    return rows
