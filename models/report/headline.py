"""The one chart that a run's page opens with: every system's figure on what the verdict stands on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from models.evaluation.hierarchical import draws_of, figure_of
from models.evaluation.published import AVERAGE
from models.evaluation.study import MEAN
from models.report.charts import Mark, mark_of, score_chart
from models.report.page import PRINTED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from models.evaluation.published import PublishedRow
    from models.report.run_content import ComparedSet, RunContent


def headline(content: RunContent) -> str | None:
    """The chart; None where nothing has a figure."""
    if content.telling is not None and content.telling[0] == MEAN:
        return _mean_chart(content)
    row = _place(content)
    if row is None:
        return None
    own = content.scores.filter(
        **{name: row[name] for name in ("dataset", "split", "subset", "metric", "protocol")}
    ).unique("model", maintain_order=True)
    marks = [
        mark_of(model, role_of(model, content.systems), value, *ends)
        for model, value, *ends in own.select("model", "value", "ci_low", "ci_high").rows()
    ]
    beside = _published(content.published, row["dataset"], row["metric"], row["protocol"])
    axis = f"{row['metric'].capitalize()} × 100 on {row['dataset']} {row['split']}, with 95 % interval"
    return score_chart([*marks, *(beside if row["split"] == "test" else ())], axis)


def role_of(model: str, systems: Sequence[str]) -> str:
    """Whether a system is the encoder before training, after it (a transform's result too), or beside it."""
    trained = any(model.startswith(system) for system in systems[1:])
    return (
        "after" if trained or "+" in model.removeprefix(systems[0]) else "before" if model == systems[0] else "baseline"
    )


def _place(content: RunContent) -> dict[str, Any] | None:
    """The figure that is drawn: what the verdict stands on, else the first of a whole test set."""
    whole = content.scores.filter(PRINTED)
    if content.telling is not None:
        dataset, split = content.telling
        whole = whole.filter(dataset=dataset, split=split, metric="spearman", protocol="all")
    tests = whole.filter(split="test")
    chosen = tests if tests.height else whole
    return chosen.row(0, named=True) if chosen.height else None


def _mean_chart(content: RunContent) -> str:
    tests = [scored for scored in content.sets if scored.split == "test"]
    systems = [name for name in tests[0].cosines if all(name in scored.cosines for scored in tests)]
    marks = [_mean_mark(name, tests, content) for name in systems]
    names = {scored.dataset for scored in tests}
    beside = [
        mark
        for row in content.published
        if set(row.values) - {AVERAGE} == names
        for mark in _published([row], AVERAGE, "spearman", "all")
    ]
    return score_chart([*marks, *beside], f"Spearman × 100, mean of {len(tests)} test sets, with 95 % interval")


def _mean_mark(name: str, tests: Sequence[ComparedSet], content: RunContent) -> Mark:
    drawn = [
        draws_of(
            scored.pairs["score"].to_numpy().astype(np.float64),
            scored.cosines[name][None],
            resamples=content.resamples,
            seed=content.seed + number,
        )
        for number, scored in enumerate(tests)
    ]
    figure = figure_of(drawn)
    return mark_of(name, role_of(name, content.systems), figure.mean, figure.ci_low, figure.ci_high)


def _published(rows: Sequence[PublishedRow], column: str, metric: str, protocol: str) -> Iterator[Mark]:
    names = set()
    for row in rows:
        if (row.metric, row.protocol) == (metric, protocol) and column in row.values and row.system not in names:
            names.add(row.system)
            yield Mark(f"{row.system} (published)", "published", row.values[column])
