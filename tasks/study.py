"""Runs of several configurations with several seeds to one table and one plot."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from models.evaluation.bootstrap import BootstrapConfig
from models.report.study import set_rows, shown_set, study_page
from models.report.study_config import Point
from storage.refs import EmbeddingsRef, ScoresRef, StudyRef
from storage.schemas import STUDY
from tasks.evaluation.sets import ScoredSet, read_scored_set
from tasks.evaluation.sts import cosines_of
from tasks.evaluation.vectors import open_vectors
from tasks.stage.cached import Work, stage
from tasks.stage.show import show_image, show_markdown, show_table

PAGE: Final = "study.md"
PLOT: Final = "study.png"


@stage(ref=StudyRef, version=2)
def study(
    work: Work,
    title: str,
    axis: str,
    points: tuple[Point, ...],
    embeddings: tuple[tuple[EmbeddingsRef, ...], ...],
    scores: tuple[tuple[ScoresRef, ...], ...],
    sets: tuple[ScoredSet, ...],
    references: tuple[str, ...],
    shown: str | None,
    config: BootstrapConfig,
) -> None:
    """Figures over seeds, differences from points that others are compared with, a page and a plot.

    Args:
        work: the stage's.
        title: of the page.
        axis: what the plot's horizontal axis is.
        points: the configurations.
        embeddings: of each point, its encoders' vectors, a seed each.
        scores: of each point, all figures of its encoders.
        sets: scored pairs on which points are compared, by the hierarchical bootstrap over seeds and pairs.
        references: labels of the points that all others are compared with; the first point if there are none.
        shown: the set that the plot draws, by its declared name; the mean of all unless given.
        config: how it draws.

    Raises:
        EvaluationError: a set cannot be scored with some vectors.
    """
    from models.report.study_plot import study_plot  # matplotlib, which a cached run never needs

    labels = [point.label for point in points]
    compared = _compared(work, labels, embeddings, sets, references or (labels[0],), config)
    table = pl.DataFrame([*compared, *_others(work, labels, scores)], schema=STUDY)
    work.draft.write(table)
    drawn = shown_set(table, shown)
    work.draft.note({"shown": drawn})
    page = study_page(title, table, PLOT, drawn)
    picture = study_plot(table, [point.model_dump() for point in points], title, axis, drawn)
    (work.draft.folder / PAGE).write_text(page, encoding="utf-8")
    (work.draft.folder / PLOT).write_bytes(picture)
    show_markdown("study", page.replace(f"![plot]({PLOT})", "(see study-plot)"), title)
    show_table("study-table", set_rows(table), title)
    show_image("study-plot", picture, title)


def _compared(
    work: Work,
    labels: list[str],
    embeddings: tuple[tuple[EmbeddingsRef, ...], ...],
    sets: tuple[ScoredSet, ...],
    references: tuple[str, ...],
    config: BootstrapConfig,
) -> list[dict[str, object]]:
    from models.evaluation.hierarchical import draws_of
    from models.evaluation.study import study_rows

    vectors = [[open_vectors(work.store, ref) for ref in seeds] for seeds in embeddings]
    draws = {}
    for number, scored in enumerate(sets):
        gold = read_scored_set(scored)["score"].to_numpy()
        draws[scored.name] = [
            draws_of(
                gold,
                np.stack([cosines_of(encoder, scored) for encoder in seeds]),
                resamples=config.resamples,
                seed=config.seed + number,  # sets are drawn apart: their figures are averaged
            )
            for seeds in vectors
        ]
    made = {"metric": "spearman", "protocol": "all"}
    return [row | made for row in study_rows(labels, draws, references=references, seed=config.seed)]


def _others(work: Work, labels: list[str], scores: tuple[tuple[ScoresRef, ...], ...]) -> list[dict[str, object]]:
    """Figures that are not of scored pairs, such as accuracies: mean and deviation over seeds, without an interval."""
    tables = [
        pl.concat([work.store.scan(ref).collect().with_columns(run=pl.lit(run)) for run, ref in enumerate(refs)])
        .filter(pl.col("metric").is_in(["accuracy", "f1"]))
        .with_columns(label=pl.lit(label))
        for label, refs in zip(labels, scores, strict=True)
    ]
    figures = pl.concat(tables).with_columns(dataset=pl.col("dataset") + " " + pl.col("split"))
    groups = figures.group_by("label", "dataset", "metric", "protocol", maintain_order=True)
    return groups.agg(mean=pl.col("value").mean(), sd=pl.col("value").std(), seeds=pl.len().cast(pl.UInt32)).to_dicts()
