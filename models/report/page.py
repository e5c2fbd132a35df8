"""The report's page: Markdown from tables, nothing computed but the layout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from models.evaluation.signature import joint_signature
from models.report.differences import signed
from models.report.escaping import code, plain
from models.report.tables import MISSING, PaperTable, paper_tables

Row = Mapping[str, Any]

INTERVALS = "Figures × 100 with their 95 % intervals"
PLACE = ("dataset", "split", "metric", "protocol")
_WHOLE = pl.col("subset").is_in(["all", "mean"]) & ~pl.col("protocol").is_in(["mean", "wmean"])
# Pearson is reported beside Spearman on AFS alone.
PRINTED = _WHOLE & ((pl.col("metric") != "pearson") | (pl.col("dataset") == "afs"))


@dataclass(frozen=True)
class ReportContent:
    """What a report is made of.

    Attributes:
        title: the recipe's name and purpose.
        scores: the scores tables of all systems, one below the other.
        comparison: differences between the encoder before and after training; None without sets of scored pairs.
        missing: set that was asked for and could not be had → why.
        tables: the form in which the papers print such scores.
        published: title → rows of figures × 100 as papers print them, each with its source.
        examples: rows with the original sentence and one column a view.
        outcomes: views kept and dropped, by method and reason.
        verdict: whether training did the encoder good; None where nothing was trained.
        artifacts: kind → key of everything the run used.
        curves: file names of the training curves beside the page, in order.
    """

    title: str
    scores: pl.DataFrame
    comparison: pl.DataFrame | None
    missing: Mapping[str, str]
    tables: Sequence[PaperTable]
    published: Mapping[str, Sequence[Row]]
    examples: Sequence[Row]
    outcomes: Sequence[Row]
    verdict: str | None
    artifacts: Mapping[str, str]
    curves: Sequence[str]


def page(content: ReportContent) -> str:
    """The report as GitHub-flavoured Markdown."""
    sections = [
        f"# {plain(content.title)}",
        *([content.verdict] if content.verdict else []),
        *printed(content.scores, content.tables),
        f"## Scores\n\n{INTERVALS}.\n\n{markdown_table(_score_lines(content.scores))}",
        *_published(content.published),
        *differences(content.comparison),
        *not_scored(content.missing),
        signatures(content.scores),
        *([f"## Views\n\n{markdown_table(content.examples)}"] if content.examples else []),
        *([f"## Views, kept and dropped\n\n{markdown_table(content.outcomes)}"] if content.outcomes else []),
        *(["## Training", *(f"![training curve]({name})" for name in content.curves)] if content.curves else []),
        "## Artifacts\n\n" + markdown_table([{"kind": kind, "key": key} for kind, key in content.artifacts.items()]),
    ]
    return "\n\n".join(sections) + "\n"


def printed(scores: pl.DataFrame, tables: Iterable[PaperTable]) -> list[str]:
    """A section a table of the papers of which there are figures, with the mean over its sets where all are there."""
    return [f"## {title}\n\n{markdown_table(_filled(rows))}" for title, rows in paper_tables(scores, tables)]


def _filled(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The rows without columns in which none has a figure, which would push the others off the page."""
    names = [name for name in rows[0] if any(row[name] != MISSING for row in rows)]
    return [{name: row[name] for name in names} for row in rows]


def score_rows(scores: pl.DataFrame) -> list[dict[str, str]]:
    """One row a data set's figure, one column a system: `value × 100 [low, high]`; means over subsets are left out."""
    chosen = scores.filter(PRINTED)
    systems = chosen["model"].unique(maintain_order=True).to_list()
    rows = []
    for place in chosen.select(*PLACE).unique(maintain_order=True).iter_rows(named=True):
        figures = {row["model"]: interval(row) for row in chosen.filter(**place).iter_rows(named=True)}
        name = f"{place['dataset']} {place['split']}: {place['metric']}, {place['protocol']}"
        rows.append({"figure": name, **{str(system): figures.get(system, "–") for system in systems}})
    return rows


def _score_lines(scores: pl.DataFrame) -> list[dict[str, str]]:
    """As `score_rows`, a row a system: side by side, three would leave the UI's page."""
    return [
        {"figure": row["figure"], "system": system, "value": value}
        for row in score_rows(scores)
        for system, value in row.items()
        if system != "figure"
    ]


def signatures(scores: pl.DataFrame) -> str:
    """The section that says how the printed figures came about: a line for each system, metric and protocol."""
    groups = scores.filter(PRINTED).group_by("model", "metric", "protocol", maintain_order=True)
    lines = [
        f"- {plain(str(model))}, {metric}, {protocol}: {code(joint_signature(rows['signature'].to_list()))}"
        for (model, metric, protocol), rows in groups
    ]
    return "## Signatures\n\nPaste these lines beside the figures:\n\n" + "\n".join(lines)


def not_scored(missing: Mapping[str, str]) -> list[str]:
    """The section on sets that could not be had, if there are any: name → why."""
    if not missing:
        return []
    lines = [f"- {plain(name)}: {plain(reason)}" for name, reason in missing.items()]
    return ["## Missing\n\nNot scored, and not part of any average:\n\n" + "\n".join(lines)]


def differences(comparison: pl.DataFrame | None) -> list[str]:
    """The section on paired differences, if systems were compared."""
    if comparison is None:
        return []
    head = "## Differences\n\nSpearman's ρ × 100 or the figure named, on the same draws, with 95 % interval and p."
    return [f"{head}\n\n{markdown_table(difference_rows(comparison))}"]


def difference_rows(comparison: pl.DataFrame) -> list[dict[str, str]]:
    """One row a pair of systems and a set: difference × 100, interval, p."""
    rows = comparison.filter(pl.col("metric") != "pearson").to_dicts()
    return [
        {
            "system": row["model"],
            "compared with": row["reference"],
            "set": f"{row['dataset']} {row['split']}{'' if row['metric'] == 'spearman' else ', ' + row['metric']}",
            "difference": signed(row["value"], row["ci_low"], row["ci_high"]),
            "p": f"{row['p_value']:.3f}",
        }
        for row in rows
    ]


def markdown_table(rows: Sequence[Row]) -> str:
    """A table of equal-keyed rows; an empty one says so."""
    if not rows:
        return "none"
    names = list(rows[0])
    lines = [list(map(plain, names)), ["---"] * len(names), *([_cell(row[name]) for name in names] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def interval(row: Row) -> str:
    """`value × 100 [low, high]`; a standard deviation has no interval."""
    if row["ci_low"] is None:
        return f"{100 * row['value']:.2f}"
    return f"{100 * row['value']:.2f} [{100 * row['ci_low']:.1f}, {100 * row['ci_high']:.1f}]"


def _published(published: Mapping[str, Sequence[Row]]) -> list[str]:
    return [
        f"Published, not measured here: {title}. Each row says who printed it; encoder, corpus and translator are "
        f"theirs.\n\n{markdown_table(rows)}"
        for title, rows in published.items()
    ]


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else plain(str(value))
