"""The page of an evaluation: which encoder is above which, scores, differences, the papers' tables, missing sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import polars as pl
from pydantic import Field

from bsl.models.evaluation.config import BootstrapConfig
from bsl.models.evaluation.signature import WHOLE
from bsl.models.evaluation.significance.paired import side_of
from bsl.models.evaluation.sweep import MEAN, with_holm
from bsl.models.evaluation.uses import SPEARMAN
from bsl.models.evaluation.verdict import REVERSED, deciding_comparison, falls
from bsl.storage.artifacts.refs import ArtifactRef, ComparisonRef, ScoresRef
from bsl.storage.datasets.registry import pairs_of
from bsl.storage.record import NotInKey, Record
from bsl.storage.sources.labels import SET_PREFIX
from bsl.tasks.figures import EvaluationFigures, ResultFigures
from bsl.tasks.rendering.blocks import Folded, Page, Part, Table
from bsl.tasks.rendering.paper_tables import PaperTable, tables_of
from bsl.tasks.rendering.score_tables import (
    INTERVALS,
    difference_table,
    mean_rows,
    missing_sets,
    score_rows,
    signatures,
)
from bsl.tasks.reporting.publish import publish
from bsl.tasks.reporting.sections import system_names
from bsl.tasks.stage.cached import StageContext, stage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from bsl.storage.artifacts.store import Store

_MEANS: Final = "Means × 100 over the sets that all systems have"
_FOLDED: Final = "All lines of the papers: also Pearson, and means over subsets (mean, wmean)"
_MOST_NAMED: Final = 3  # systems in a title


class Missing(Record):
    """Requested sets that were not found."""

    names: tuple[str, ...] = ()
    """Names, as requested."""
    reasons: Annotated[dict[str, str], NotInKey] = Field(default_factory=dict)
    """Name → reason and remedy."""

    @classmethod
    def of(cls, reasons: Mapping[str, str]) -> Missing:
        """Return the sets of a mapping name → reason."""
        return cls(names=tuple(reasons), reasons=dict(reasons))


@stage(ref=ArtifactRef, kind="evaluation", version=12)
def summarise(
    context: StageContext,
    scores: tuple[ScoresRef, ...],
    comparisons: tuple[ComparisonRef, ...],
    missing: Missing,
    notes: tuple[str, ...],
    tables: tuple[PaperTable, ...],
) -> None:
    """Publish the page, and the scores of all systems as one table.

    `notes` are sentences about the scores, and `tables` the layouts of the papers.
    """
    table = pl.concat([context.store.scan(ref).collect() for ref in scores])
    comparison = write_figures(context, table, comparisons)
    draws = draws_of(context.store, comparisons)
    findings = list(findings_of(table, comparison))
    notes = (*notes, *reversed_scores(table))
    context.draft.note(EvaluationFigures(missing=missing.reasons, notes=[*notes]))
    context.draft.note(ResultFigures(findings=findings, draws=draws))
    publish(context, evaluation_page(table, comparison, missing.reasons, notes, tables, draws))


def reversed_scores(scores: pl.DataFrame) -> Iterator[str]:
    """Yield a sentence for each file of labels whose scores fall as the cosines of all systems rise."""
    own = scores.filter(pl.col("dataset").str.starts_with(SET_PREFIX), metric=SPEARMAN)
    for (name,), rows in own.group_by("dataset", maintain_order=True):
        if all(falls(*row) for row in rows.select("value", "n").iter_rows()):
            yield f"Scores of {name} fall as similarity rises, for all encoders here. {REVERSED}."


def draws_of(store: Store, comparisons: Sequence[ComparisonRef]) -> int | None:
    """Return the number of bootstrap draws of comparisons; None without one."""
    configs = [store.manifest(ref).provenance.config["config"] for ref in comparisons]
    return min((BootstrapConfig.model_validate(config).resamples for config in configs), default=None)


def write_figures(
    context: StageContext, scores: pl.DataFrame, comparisons: Sequence[ComparisonRef]
) -> pl.DataFrame | None:
    """Write the tables `scores` and `comparison` of a report; return `comparison`, with Holm's p, None without one."""
    context.draft.write(scores, "scores")
    compared = [context.store.scan(ref).collect() for ref in comparisons]
    if not compared:
        return None
    comparison = with_holm(pl.concat(compared))
    context.draft.write(comparison, "comparison")
    return comparison


def evaluation_page(
    scores: pl.DataFrame,
    comparison: pl.DataFrame | None,
    missing: Mapping[str, str],
    notes: Sequence[str],
    tables: Iterable[PaperTable],
    draws: int | None = None,
) -> Page:
    """Return the page: a finding, a chart, means, a figure per set, differences, missing sets, the papers' tables.

    Without a comparison, `comparison` and `draws` are None; `missing` maps sets to reasons.
    """
    from bsl.tasks.rendering.charts import system_chart  # matplotlib

    papers, means = list(tables_of(scores, tuple(tables), [], "")), mean_rows(scores)
    parts = [
        Part("Scores", [*([Table.of(_MEANS, means)] if means else []), Table.of(INTERVALS, score_rows(scores))]),
        difference_part(comparison, draws),
        Part("Missing", [missing_sets(missing)] if missing else []),
        Part("Tables of the papers", [Folded(_FOLDED, papers)] if papers else []),
        Part("Signatures", [signatures(scores)]),
    ]
    title = f"Evaluation of {_listed([*system_names(scores['model'].unique(maintain_order=True)).values()])}"
    return Page.of_result(title, [" ".join(findings_of(scores, comparison)), *notes], system_chart(scores), parts)


def difference_part(comparison: pl.DataFrame | None, draws: int | None = None) -> Part:
    """Return the section of differences between systems; empty without the table `comparison`."""
    return Part("Differences", [] if comparison is None else [difference_table(comparison, draws)])


def findings_of(scores: pl.DataFrame, comparison: pl.DataFrame | None) -> Iterator[str]:
    """Yield a sentence for each pair of compared systems: which is above the other, by how much, on which set."""
    if comparison is None:
        return
    compared = pl.concat([scores["model"], comparison["model"], comparison["reference"].alias("model")])
    names = system_names(compared.unique(maintain_order=True))
    for model, reference in comparison.select("model", "reference").unique(maintain_order=True).rows():
        pair = comparison.filter(model=model, reference=reference)
        row = deciding_comparison(pair, (reference, model)) or pair.row(0, named=True)
        yield _finding(names[model], names[reference], row, _place(row, pair))


def _finding(model: str, reference: str, row: Mapping[str, Any], place: str) -> str:
    value, low, high = (100 * row[name] for name in ("value", "ci_low", "ci_high"))
    side = side_of(low, high, row["p_value"])
    if side == "no":
        return (
            f"No significant difference of {model} from {reference} on {place}: {value:+.2f} [{low:+.2f}, {high:+.2f}]."
        )
    if side == "below":
        value, low, high = -value, -high, -low
    return f"{model} is {side} {reference} by {value:.2f} [{low:.2f}, {high:.2f}] on {place}."


def _place(row: Mapping[str, Any], pair: pl.DataFrame) -> str:
    """Return the name of a set with its metric, or the number of sets of a mean."""
    if row["dataset"] == MEAN:
        tests = pair.filter(pl.col("dataset") != MEAN, split="test", metric=row["metric"])
        sets = len(set(map(pairs_of, tests["dataset"])))
        return f"the mean of {sets} test sets ({row['metric']} × 100)"
    return f"{row['dataset']} {'' if row['split'] == WHOLE else row['split'] + ' '}({row['metric']} × 100)"


def _listed(names: Sequence[str]) -> str:
    if len(names) > _MOST_NAMED:
        return f"{names[0]} and {len(names) - 1} more"
    return " and ".join(names)
