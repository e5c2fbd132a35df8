"""The page of a sweep: a verdict and a chart, differences to each reference, every system on every set."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from bsl.models.evaluation.signature import with_sign
from bsl.models.evaluation.sweep import MEAN
from bsl.tasks.rendering.blocks import Folded, Page, Part, Prose, Table
from bsl.tasks.rendering.numbers import MISSING, interval, p_value, spread
from bsl.tasks.reporting.sweep.system import SYSTEMS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bsl.tasks.figures import SweepFigures
    from bsl.tasks.rendering.svg import Chart
    from bsl.tasks.reporting.sweep.system import SweepSystem

_LEGEND: Final = (
    "Figures × 100: mean over seeds ± standard deviation. The 95 % interval is over test pairs, or questions about a "
    "text, by the bootstrap (which draws questions by document, or by runs of sentences of a long document), and over "
    "seeds by Student's t; with one seed, over pairs or questions only. The difference is from the system named "
    "above, on the same draws, with p after Holm's correction for all comparisons of the table. Significant (above or "
    "below): its interval excludes 0 and p is below 0.05. Sets without bootstrap draws (SentEval's accuracies, "
    "argument facets) are not compared: their interval combines Student's t interval over seeds with the set's own "
    "interval, if the set has one."
)
_LEGEND_OF_ROWS: Final = (
    "On the chart, a diamond is significantly above the line, a cross significantly below, and a square has no "
    "significant difference."
)
_ONE_SEED: Final = (
    "One seed: another seed would change every trained figure, and the intervals do not include that change. Use "
    "several seeds (--seeds 3 of bsl sweep) before you rely on a small difference."
)
_PREFERRED: Final = "spearman"
_FEW: Final = 4  # maximum number of systems named in a sentence
_ROLES: Final = {"above": "after", "below": "published"}


def sweep_page(
    title: str,
    table: pl.DataFrame,
    figures: SweepFigures,
    chart: Chart | None,
    sentences: Sequence[str],
    more_parts: Sequence[Part],
) -> Page:
    """Return the page of the table `sweep`; `more_parts` are the sections on runs and on the text."""
    notes = [*figures.notes, *([_ONE_SEED] if table["seeds"].max() == 1 else [])]
    # A chart along a setting has circles, and crosses are published figures there.
    legend = f"{_LEGEND} {_LEGEND_OF_ROWS}" if chart and chart.name == "scores" else _LEGEND
    parts = [
        *(Part(heading, [Table.of("Figures × 100", rows)]) for heading, rows in comparisons(table, figures)),
        Part("All sets", _all_sets(table, figures) if table["dataset"].n_unique() > 1 else []),
        Part("Errors", [Prose(line) for line in fault_lines(figures.faults)]),
        Part("How to read the figures", [*map(Prose, notes), Prose(legend, note=True)]),
        *more_parts,
    ]
    return Page.of_result(title, sentences, chart, parts)


def _all_sets(table: pl.DataFrame, figures: SweepFigures) -> list[Table | Folded]:
    """Return every system on every set, and differences on the sets that have no section of their own."""
    above = [dataset for dataset, _, _ in headlines(table, figures.shown)]
    others = table.filter(~pl.col("dataset").is_in(above))
    parts = others.drop_nulls("reference").partition_by("dataset", "metric", "protocol", maintain_order=True)
    tables = [
        Table.of(heading, rows) for part in parts for heading, rows in _headed(part["dataset"][0], part, figures.draws)
    ]
    means = Table.of("Mean over seeds × 100 ± standard deviation", set_rows(table))
    return [means, *([Folded("Differences on all other sets", tables)] if tables else [])]


def finding(table: pl.DataFrame, shown: str) -> str:
    """Return the systems above and below each reference, and those without a clear difference."""
    return " ".join(line for _, name, rows in headlines(table, shown) for line in _findings(rows, name))


def _findings(rows_of_set: pl.DataFrame, shown: str) -> Iterator[str]:
    for reference in rows_of_set["reference"].drop_nulls().unique(maintain_order=True):
        rows = [
            row
            for row in rows_of_set.filter(reference=reference).iter_rows(named=True)
            if row["difference"] is not None
        ]
        named = {word: [_gap(row) for row in rows if row["verdict"] == word] for word in ("above", "below")}
        other = _quoted(reference)
        sentences = [f"{word} {other}: {', '.join(labels)}" for word, labels in named.items() if labels]
        same = [_quoted(row["label"]) for row in rows if row["verdict"] == "no"]
        sentences += (
            [f"no significant difference from {other}: {', '.join(same) if len(same) <= _FEW else len(same)}"]
            if same
            else []
        )
        if sentences:
            yield f"On {shown}, {'; '.join(sentences)}."


def _gap(row: Mapping[str, Any]) -> str:
    return f"{_quoted(row['label'])} ({with_sign(row['difference'], row['difference_low'], row['difference_high'])})"


def _quoted(label: str) -> str:
    """Return a label for a list; quoted if it is of several fields, such as `momentum 0.9, tiny`."""
    return f"“{label}”" if ", " in label else label


def sweep_chart(table: pl.DataFrame, shown: str, systems: Sequence[SweepSystem], axis: str) -> Chart | None:
    """Return the chart of each system's figure on the shown set, with its interval; None without figures.

    A setting is drawn as a curve; systems as one row each, highest first, with a line at the first reference.
    """
    from bsl.tasks.rendering.charts import Mark, mark_of, score_chart, setting_chart  # matplotlib

    figures = shown_rows(table, shown).drop_nulls("mean")
    rows = {
        row["label"]: row for row in figures.unique("label", keep="first", maintain_order=True).iter_rows(named=True)
    }
    known = [system for system in systems if system.label in rows]
    if not known:
        return None
    marks = {
        label: mark_of(label, _role(row), row["mean"], row["ci_low"], row["ci_high"]) for label, row in rows.items()
    }
    name = f"{shown}, × 100, with 95 % interval"
    if others := dict.fromkeys(one.published_as for one in known if one.published_as):
        name += f"; published: {', '.join(others)}"
    if axis != SYSTEMS:
        along = [replace(marks[one.label], line=one.line, place=one.place, published=one.published) for one in known]
        return setting_chart(along, axis, name)
    reference = rows.get(rows[known[0].label]["reference"])
    printed = [Mark(f"{one.label} (published)", "system", one.published) for one in known if one.published]
    ranked = sorted((marks[one.label] for one in known), key=lambda mark: -mark.value)
    return score_chart([*ranked, *printed], name, line=None if reference is None else 100 * reference["mean"])


def _role(row: Mapping[str, Any]) -> str:
    return "before" if row["label"] == row["reference"] else _ROLES.get(row["verdict"] or "", "baseline")


def fault_lines(faults: Mapping[str, str]) -> list[str]:
    """Return a line for each system with runs that have no figures."""
    return [f"{label}: {reason}" for label, reason in faults.items()]


def shown_set(table: pl.DataFrame, declared: str | None) -> str:
    """Return the set to draw: the declared one, else the mean of all, else the last one that most systems have.

    A declared name has no split: its last split is drawn, as test sets follow dev sets.
    """
    counts = dict(table.group_by("dataset", maintain_order=True).agg(pl.col("label").n_unique()).rows())
    names = [name for name, count in counts.items() if count == max(counts.values())]
    preferred = [name for name in names if declared is not None and name.split(" ")[0] == declared]
    preferred = preferred or [name for name in names if name == MEAN]
    tests = [name for name in names if not name.endswith(" dev")] or names
    compared = set(table.filter("decides")["dataset"])
    return str((preferred or [name for name in tests if name in compared] or tests)[-1])


def shown_rows(table: pl.DataFrame, shown: str) -> pl.DataFrame:
    """Return the rows of one metric of a set: Spearman if it has it, else its first (such as accuracy before F1)."""
    of_set = table.filter(dataset=shown)
    preferred = of_set.filter(metric=_PREFERRED)
    first = (preferred if preferred.height else of_set).row(0, named=True)
    return of_set.filter(metric=first["metric"], protocol=first["protocol"])


def headlines(table: pl.DataFrame, shown: str) -> Iterator[tuple[str, str, pl.DataFrame]]:
    """Yield set, name on the page and rows of the shown set, and of one set for each other metric with comparisons."""
    rows_shown = shown_rows(table, shown)
    yield shown, shown, rows_shown
    drawn = table.drop_nulls("reference").filter(pl.col("metric") != rows_shown["metric"][0])
    for rows in drawn.partition_by("metric", maintain_order=True):
        dataset = shown_set(rows, None)
        name = f"{dataset} by {rows['metric'][0]}" if dataset == shown else dataset
        yield dataset, name, rows.filter(dataset=dataset)


def set_rows(table: pl.DataFrame) -> list[dict[str, str]]:
    """Return a row per system of the table `sweep`, a column per set: mean ± deviation.

    The column names the protocol if there are several, such as SentEval's two.
    """
    firsts = table.unique(["label", "dataset", "metric", "protocol"], keep="first", maintain_order=True)
    is_preferred = pl.col("metric") == _PREFERRED
    metric = pl.when(is_preferred).then("dataset").otherwise(pl.format("{}, {}", "dataset", "metric"))
    has_protocols = pl.col("protocol").n_unique().over("dataset", "metric") > 1
    name = pl.when(has_protocols).then(pl.format("{} ({})", metric, "protocol")).otherwise(metric)
    cells = pl.Series([spread(mean, sd) for mean, sd in firsts.select("mean", "sd").rows()], dtype=pl.String)
    named = firsts.select(name.alias("set"), system="label", cell=cells)
    return named.pivot("set", index="system", values="cell").fill_null(MISSING).to_dicts()


def comparisons(table: pl.DataFrame, figures: SweepFigures) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Yield a heading and `figure_rows` for each headline and system that the others are compared with."""
    for _, name, rows in headlines(table, figures.shown):
        yield from _headed(name, rows, figures.draws)


def _headed(name: str, rows: pl.DataFrame, draws: int | None) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Yield a heading and `figure_rows` for each reference of a set."""
    head = f"{name} ({rows['metric'][0]}, {rows['protocol'][0]})"
    references = rows["reference"].drop_nulls().unique(maintain_order=True).to_list()
    for reference in references:
        yield f"{head}, compared with {reference}", figure_rows(rows.filter(reference=reference), draws)
    if not references:
        yield head, figure_rows(rows, draws)


def figure_rows(table: pl.DataFrame, draws: int | None) -> list[dict[str, str]]:
    """Return formatted rows of the table `sweep`, for one set and reference; p is of a number of bootstrap draws."""
    compared = table["p_value"].count()
    return [
        {
            "system": row["label"],
            "mean ± sd": spread(row["mean"], row["sd"]),
            "95 % interval": interval(row["ci_low"], row["ci_high"]),
            "seeds": str(row["seeds"]),
            "difference": with_sign(row["difference"], row["difference_low"], row["difference_high"]),
            "p": p_value(row["p_value"], draws, compared),
            "significant": row["verdict"] or "",
        }
        for row in table.iter_rows(named=True)
    ]
