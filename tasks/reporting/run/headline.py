"""The first chart of a run's page: every system's figure on the set that decides the verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bsl.models.evaluation.published import AVERAGE
from bsl.models.evaluation.signature import PRINTED
from bsl.models.evaluation.significance.hierarchical import draws_of, figure_of, mean_draws
from bsl.models.evaluation.sweep import MEAN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bsl.models.evaluation.config import BootstrapConfig
    from bsl.models.evaluation.published import PublishedRow
    from bsl.tasks.rendering.charts import Mark
    from bsl.tasks.rendering.svg import Chart
    from bsl.tasks.reporting.run.content import Run
    from bsl.tasks.reporting.run.tables import ComparedSet


def headline(run: Run, sets: Sequence[ComparedSet], published: Sequence[PublishedRow]) -> Chart | None:
    """Return the chart, with published rows; None without figures."""
    from bsl.tasks.rendering.charts import figure_chart  # matplotlib

    if run.deciding is not None and run.deciding[0] == MEAN:
        return _mean_chart(run, sets, published)
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


def _mean_chart(run: Run, sets: Sequence[ComparedSet], published: Sequence[PublishedRow]) -> Chart:
    from bsl.tasks.rendering.charts import score_chart  # matplotlib

    tests = [scored for scored in sets if scored.source.split == "test"]
    systems = [name for name in tests[0].cosines if all(name in scored.cosines for scored in tests)]
    marks = [_mean_mark(name, tests, run) for name in systems]
    names = {scored.source.dataset for scored in tests}
    printed = [
        mark
        for row in published
        if set(row.values) - {AVERAGE} == names
        for mark in _published([row], AVERAGE, "spearman", "all")
    ]
    return score_chart([*marks, *printed], f"Spearman × 100, mean of {len(tests)} test sets, with 95 % interval")


def _mean_mark(name: str, tests: Sequence[ComparedSet], run: Run) -> Mark:
    from bsl.tasks.rendering.charts import mark_of  # matplotlib

    bootstrap: BootstrapConfig = run.settings.evaluation.bootstrap
    pairs = [(scored.pairs["score"].to_numpy().astype(np.float64), scored.cosines[name]) for scored in tests]
    drawn = [
        draws_of(gold, cosines[None], resamples=bootstrap.resamples, seed=bootstrap.seed + number)
        for number, (gold, cosines) in enumerate(pairs)
    ]
    figure = figure_of(mean_draws(drawn))
    return mark_of(name, role_of(name, run.settings.systems), figure.mean, figure.ci_low, figure.ci_high)


def _published(rows: Sequence[PublishedRow], column: str, metric: str, protocol: str) -> Iterator[Mark]:
    from bsl.tasks.rendering.charts import Mark  # matplotlib

    names = set()
    for row in rows:
        if (row.metric, row.protocol) == (metric, protocol) and column in row.values and row.system not in names:
            names.add(row.system)
            yield Mark(f"{row.system} (published)", "published", row.values[column])
