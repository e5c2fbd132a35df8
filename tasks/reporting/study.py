"""Runs of several configurations with several seeds: one table, one page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from models.evaluation.config import BootstrapConfig
from storage.artifacts.refs import EmbeddingsRef, ScoresRef, StudyRef
from storage.artifacts.schemas import STUDY
from tasks.corpus.evaluation_sets import EvaluationSet
from tasks.embedding.vectors import open_vectors
from tasks.evaluation.kinds import frozen_kind
from tasks.reporting.publish import publish
from tasks.reporting.study_page import Point, faults_of, shown_set, study_page
from tasks.stage.cached import StageInputs, Work, stage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from models.evaluation.sweep import SetDraws

PAGE: Final = "study"


class StudyRuns(StageInputs):
    """The runs of a study, in the order of its points."""

    points: tuple[Point, ...]
    """The configurations."""
    embeddings: tuple[tuple[EmbeddingsRef, ...], ...]
    """Of each point, its encoders' vectors, one a seed; none where no run of it left any."""
    scores: tuple[tuple[ScoresRef, ...], ...]
    """Of each point, all figures of its encoders."""


class StudySettings(StageInputs):
    """Sets, references and form of a study."""

    title: str
    """Title of the page."""
    axis: str
    """Horizontal axis of the plot."""
    sets: dict[str, EvaluationSet]
    """Name → set, of the sets on which points are compared, by the hierarchical bootstrap over seeds and questions."""
    others: dict[str, tuple[str, ...]]
    """Dataset → its headline metrics, for sets other than scored pairs."""
    references: tuple[str, ...]
    """Labels of the points that all others are compared with. Those without figures are left out; the first point
    with figures is used if none is left."""
    shown: str | None
    """Set that the plot draws, by its declared name; the mean of all if None."""
    config: BootstrapConfig
    """Settings of the intervals; more draws where there are many comparisons (`enough_draws`)."""


@stage(ref=StudyRef, version=5)
def study(work: Work, runs: StudyRuns, asked: StudySettings) -> None:
    """Figures over seeds, differences from points that others are compared with, a page.

    Args:
        work: the stage's.
        runs: points with their vectors and figures.
        asked: sets, references and form.

    Raises:
        EvaluationError: a set cannot be scored with some vectors.
    """
    points, title = runs.points, asked.title
    vectors = {point.label: made for point, made in zip(points, runs.embeddings, strict=True) if made}
    own = {point.label: made for point, made in zip(points, runs.scores, strict=True) if made}
    labels = list(vectors)
    beside = tuple(label for label in asked.references if label in vectors) or (labels[0],)
    compared = _compared(work, vectors, asked.sets, beside, asked.config)
    figures = pl.DataFrame([*compared, *_others(work, own, asked.others)], schema=STUDY)
    table = pl.concat([figures, _without(figures, [point.label for point in points if point.label not in vectors])])
    work.draft.write(table)
    drawn = shown_set(table, asked.shown)
    notes = _notes(len(labels) - 1, asked.config) if asked.sets and len(labels) > 1 else []
    work.draft.note({"shown": drawn, "faults": {**faults_of(points)}, "notes": [*notes]})
    publish(work, study_page(title, table, points, asked.axis, drawn, notes), PAGE)


def _compared(
    work: Work,
    embeddings: Mapping[str, tuple[EmbeddingsRef, ...]],
    sets: Mapping[str, EvaluationSet],
    references: tuple[str, ...],
    config: BootstrapConfig,
) -> list[dict[str, object]]:
    from models.evaluation.sweep import MEAN, SweepResult, enough_draws, mean_of

    if not sets:
        return []
    vectors = [[open_vectors(work.store, ref) for ref in seeds] for seeds in embeddings.values()]
    resamples = enough_draws(config.resamples, len(vectors) - 1)
    compared: list[SetDraws] = []
    for number, (name, wanted) in enumerate(sets.items()):
        # Sets are drawn apart: their figures are averaged.
        drawn = BootstrapConfig(resamples=resamples, seed=config.seed + number)
        compared += frozen_kind(name).draws(wanted, vectors, drawn)
    means = []
    for metric in dict.fromkeys(own.metric for own in compared):
        alike = [own for own in compared if own.metric == metric]
        means += [mean_of(alike, MEAN, metric)] if len(alike) > 1 else []
    return list(SweepResult(tuple(embeddings), (*compared, *means), config.seed).rows(references))


def _notes(comparisons: int, config: BootstrapConfig) -> list[str]:
    from models.evaluation.sweep import enough_draws, smallest_p

    draws = enough_draws(config.resamples, comparisons)
    return [
        f"{draws:,} draws and {comparisons} comparison{'s' if comparisons > 1 else ''}: the smallest p that a "
        f"difference can reach here is {smallest_p(draws, comparisons):.4f}."
    ]


def _others(
    work: Work, scores: Mapping[str, tuple[ScoresRef, ...]], wanted: Mapping[str, tuple[str, ...]]
) -> Iterator[dict[str, object]]:
    """Figures of sets that are no scored pairs, such as accuracies: over seeds, without a comparison."""
    from models.evaluation.reproduction import measured

    headlines = [pl.col("dataset").eq(name) & pl.col("metric").is_in(metrics) for name, metrics in wanted.items()]
    place = ("dataset", "split", "metric", "protocol")
    for label, refs in scores.items():
        rows = pl.concat([work.store.scan(ref).collect() for ref in refs])
        own = rows.filter(pl.any_horizontal(*headlines, False), pl.col("subset").is_in(["all", "mean"]))
        for (dataset, split, metric, protocol), seeds in own.group_by(place, maintain_order=True):
            ends = [pl.col(end).fill_null(pl.col("value")) for end in ("ci_low", "ci_high")]
            figure = measured(seeds.select("value", *ends).rows())
            known = seeds["ci_low"].null_count() == 0 or figure.sd is not None  # else nothing was drawn
            low, high = figure.interval if known else (None, None)
            yield {
                "label": label,
                "dataset": f"{dataset} {split}",
                "metric": metric,
                "protocol": protocol,
                "mean": figure.mean / 100,
                "sd": _share(figure.sd),
                "ci_low": _share(low),
                "ci_high": _share(high),
                "seeds": seeds.height,
            }


def _share(figure: float | None) -> float | None:
    """Of a figure × 100."""
    return None if figure is None else figure / 100


def _without(figures: pl.DataFrame, labels: list[str]) -> pl.DataFrame:
    """A row without a figure wherever the others have one, for points of which no run left any."""
    places = figures.select("dataset", "metric", "protocol", "reference").unique(maintain_order=True)
    rows = [{"label": label, **place, "seeds": 0} for label in labels for place in places.rows(named=True)]
    return pl.DataFrame(rows, schema=STUDY)
