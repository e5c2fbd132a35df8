"""The first chart of a run's page: every system's figure on the set that decides the verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from bsl.models.evaluation.published import AVERAGE
from bsl.models.evaluation.signature import PRINTED
from bsl.models.evaluation.sweep import MEAN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bsl.models.evaluation.published import PublishedRow
    from bsl.tasks.rendering.charts import Mark
    from bsl.tasks.rendering.svg import Chart
    from bsl.tasks.reporting.run.content import Run


def headline(run: Run, published: Sequence[PublishedRow]) -> Chart | None:
    """Return the chart, with published rows; None without figures."""
    from bsl.tasks.rendering.charts import figure_chart  # matplotlib

    if run.deciding is not None and run.deciding[0] == MEAN:
        return _mean_chart(run, published)
    row = _place(run)
    if row is None:
        return None
    roles = {model: role_of(model, run.settings.systems) for model in run.scores["model"].unique()}
    printed = _published(published, row["dataset"], row["metric"], row["protocol"]) if row["split"] == "test" else ()
    return figure_chart(run.scores, row, roles, list(printed))


def role_of(model: str, systems: Sequence[str]) -> str:
    """Return a system's role: `before` training, `after` training or a transform, else `baseline`."""
    trained = any(model.startswith(system) for system in systems[1:])
    return (
        "after" if trained or "+" in model.removeprefix(systems[0]) else "before" if model == systems[0] else "baseline"
    )


def _place(run: Run) -> dict[str, Any] | None:
    """Return the figure to draw: that of the verdict, else the first on a test set; None without figures."""
    scores = run.scores.filter(PRINTED)
    if run.deciding is not None:
        dataset, split = run.deciding
        scores = scores.filter(dataset=dataset, split=split, metric="spearman", protocol="all")
    tests = scores.filter(split="test")
    candidates = tests if tests.height else scores
    return candidates.row(0, named=True) if candidates.height else None


def _mean_chart(run: Run, published: Sequence[PublishedRow]) -> Chart:
    """Return each system's mean over the test sets; only compared systems have an interval."""
    from bsl.tasks.rendering.charts import mark_of, score_chart  # matplotlib

    tests = [scored.dataset for scored in run.artifacts.sets if scored.split == "test"]
    scores = run.scores.filter(
        pl.col("dataset").is_in(tests), split="test", metric="spearman", protocol="all", subset="all"
    )
    means = pl.concat([run.store.scan(ref, "compared").filter(dataset=MEAN) for ref in run.artifacts.comparisons])
    compared = {row["model"]: row for row in means.collect().iter_rows(named=True)}
    marks = []
    for (name,), rows in scores.group_by("model", maintain_order=True):
        row = compared.get(name, {})
        if rows.height == len(tests):
            value = row.get("value", float(rows["value"].to_numpy().mean()))
            marks.append(
                mark_of(name, role_of(name, run.settings.systems), value, row.get("ci_low"), row.get("ci_high"))
            )
    printed = [
        mark
        for row in published
        if set(row.values) - {AVERAGE} == set(tests)
        for mark in _published([row], AVERAGE, "spearman", "all")
    ]
    return score_chart([*marks, *printed], f"Spearman × 100, mean of {len(tests)} test sets, with 95 % interval")


def _published(rows: Sequence[PublishedRow], column: str, metric: str, protocol: str) -> Iterator[Mark]:
    from bsl.tasks.rendering.charts import Mark  # matplotlib

    names = set()
    for row in rows:
        if (row.metric, row.protocol) == (metric, protocol) and column in row.values and row.system not in names:
            names.add(row.system)
            yield Mark(f"{row.system} (published)", "published", row.values[column])
