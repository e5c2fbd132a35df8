"""The report's page: Markdown from tables, nothing computed but the layout."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

Row = Mapping[str, Any]


@dataclass(frozen=True)
class ReportContent:
    """What a report is made of.

    Attributes:
        title: the recipe's name and purpose.
        scores: the scores tables of all systems, one below the other.
        comparison: differences between the encoder before and after training.
        missing: set that was asked for and could not be had → why.
        published: system → data set → Spearman × 100 as its paper prints it.
        examples: rows with the original sentence and one column a view.
        statistics: section → figure → value, as the stages measured them.
        config: the complete configuration, as JSON text.
        artifacts: kind → key of everything the run used.
        curve: file name of the training curve beside the page.
    """

    title: str
    scores: pl.DataFrame
    comparison: pl.DataFrame
    missing: Mapping[str, str]
    published: Mapping[str, Mapping[str, float]]
    examples: Sequence[Row]
    statistics: Mapping[str, Mapping[str, object]]
    config: str
    artifacts: Mapping[str, str]
    curve: str


def page(content: ReportContent) -> str:
    """The report as GitHub-flavoured Markdown."""
    sections = [
        f"# {content.title}",
        "## Scores\n\nSpearman's ρ × 100 between cosine and gold, protocol `all`, with 95 % bootstrap intervals.\n\n"
        + markdown_table(score_rows(content.scores)),
        *_published(content.published),
        differences(content.comparison),
        *not_scored(content.missing),
        "## Views\n\n" + markdown_table(content.examples),
        f"## Training\n\n![training curve]({content.curve})",
        *(f"## {name}\n\n" + markdown_table(_pairs(figures)) for name, figures in content.statistics.items()),
        "## Artifacts\n\n" + markdown_table([{"kind": kind, "key": key} for kind, key in content.artifacts.items()]),
        f"## Configuration\n\n```json\n{content.config}\n```",
    ]
    return "\n\n".join(sections) + "\n"


def score_rows(scores: pl.DataFrame) -> list[dict[str, str]]:
    """One row a system, one column a data set and split: `ρ × 100 [low, high]`, by protocol `all`."""
    chosen = scores.filter(
        (pl.col("metric") == "spearman") & (pl.col("protocol") == "all") & (pl.col("subset") == "all")
    )
    columns = chosen.select("dataset", "split").unique(maintain_order=True).rows()
    rows = []
    for model in chosen["model"].unique(maintain_order=True):
        row = {"system": str(model)}
        for dataset, split in columns:
            figure = chosen.filter(model=model, dataset=dataset, split=split).to_dicts()
            row[f"{dataset} {split}"] = interval(figure[0]) if figure else "missing"
        rows.append(row)
    return rows


def not_scored(missing: Mapping[str, str]) -> list[str]:
    """The section on sets that could not be had, if there are any: name → why."""
    if not missing:
        return []
    lines = [f"- {name}: {reason}" for name, reason in missing.items()]
    return ["## Missing\n\nNot scored, and not part of any average:\n\n" + "\n".join(lines)]


def differences(comparison: pl.DataFrame) -> str:
    """The section on paired differences."""
    return (
        "## Differences\n\nSpearman's ρ × 100 on the same draws of pairs, with 95 % interval and two-sided p.\n\n"
        + markdown_table(difference_rows(comparison))
    )


def difference_rows(comparison: pl.DataFrame) -> list[dict[str, str]]:
    """One row a pair of systems and a set: difference × 100, interval, p."""
    rows = comparison.filter(metric="spearman").to_dicts()
    return [
        {
            "system": row["model"],
            "compared with": row["reference"],
            "set": f"{row['dataset']} {row['split']}",
            "difference": f"{100 * row['value']:+.2f} [{100 * row['ci_low']:+.2f}, {100 * row['ci_high']:+.2f}]",
            "p": f"{row['p_value']:.3f}",
        }
        for row in rows
    ]


def markdown_table(rows: Sequence[Row]) -> str:
    """A table of equal-keyed rows; an empty one says so."""
    if not rows:
        return "none"
    names = list(rows[0])
    lines = [names, ["---"] * len(names), *([_cell(row[name]) for name in names] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def interval(row: Row) -> str:
    """`value × 100 [low, high]`; a standard deviation has no interval."""
    if row["ci_low"] is None:
        return f"{100 * row['value']:.2f}"
    return f"{100 * row['value']:.2f} [{100 * row['ci_low']:.1f}, {100 * row['ci_high']:.1f}]"


def _published(published: Mapping[str, Mapping[str, float]]) -> list[str]:
    if not published:
        return []
    rows = [{"published system": name, **figures} for name, figures in published.items()]
    return ["Published (by the paper; BERT-base scale and the full corpus):\n\n" + markdown_table(rows)]


def _pairs(figures: Mapping[str, object]) -> list[dict[str, object]]:
    return [{"figure": name, "value": value} for name, value in figures.items()]


def _cell(value: object) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return text.replace("|", "\\|").replace("\n", " ")
