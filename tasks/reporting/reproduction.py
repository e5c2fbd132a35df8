"""Compare the reports of several seeds with a published row."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import polars as pl

from bsl.models.evaluation.published import AVERAGE, columns_of, rows_of
from bsl.models.evaluation.reproduction import MOST, compare, estimate_over_seeds, overall
from bsl.models.evaluation.signature import joint_signature
from bsl.models.evaluation.verdict import STOPPED
from bsl.storage.artifacts.refs import ArtifactRef, CorpusRef, ReportRef
from bsl.storage.artifacts.schemas import REPRODUCTION
from bsl.storage.datasets.registry import DATASETS
from bsl.tasks.figures import IngestFigures, ReportFigures
from bsl.tasks.rendering.blocks import Page, Part, Prose, Table
from bsl.tasks.rendering.numbers import MISSING, fixed
from bsl.tasks.rendering.paper_tables import OVER_SUBSETS
from bsl.tasks.reporting.publish import publish
from bsl.tasks.stage.cached import StageContext, StageInputs, stage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from bsl.models.evaluation.published import PublishedRow
    from bsl.models.evaluation.reproduction import Comparison
    from bsl.models.evaluation.significance.hierarchical import Estimate
    from bsl.storage.artifacts.store import Store
    from bsl.tasks.rendering.svg import Chart

    Test = Callable[[Estimate, float], Comparison]
    Interval = tuple[float, float, float]

TOKENISED: Final = "-tok"  # suffix of sets in SentEval's tokenised text
_LEGEND: Final = (
    "sd: over seeds. 90 % over seeds: Student's t interval of the mean; it decides the verdict. REPRODUCED: the "
    "interval is within the margin around the published figure; the margin was set before the runs. BELOW, ABOVE: the "
    "complete interval is beyond the margin on that side. INCONCLUSIVE: none of these; `seeds needed` is the number of "
    "seeds for a verdict if mean and sd stay the same. 95 % with pairs: over seeds and pairs, or over pairs alone for "
    "one seed; it does not decide the verdict because the published figure was measured on the same pairs."
)
_SPREAD: Final = "supervised-sd"  # deviation over seeds, not a figure to reproduce
_OVER_SEEDS: Final = {"supervised-mean": "all"}  # published mean over fine-tuned runs → protocol of one run


class RowComparison(StageInputs):
    """A published row, and the settings of its comparison with runs."""

    row: str
    cells: tuple[str, ...]
    """Sets to compare, if other recipes cover the rest of the row; all if empty."""
    system: str
    """Name of the trained encoder in the reports."""
    deviations: tuple[str, ...]
    """Deviations of the runs' configuration from the row."""
    records: dict[str, int]
    """Source of sentences → number of its records."""
    margin: float
    """Points by which equivalent figures may differ."""
    draws: bool
    """Whether the recipe depends on the seed."""


@stage(ref=ArtifactRef, kind="reproduction", version=9)
def reproduce(context: StageContext, reports: tuple[ReportRef, ...], comparison: RowComparison) -> None:
    """Compare the figures of a recipe's runs, one report per seed, with its published row."""
    row, cells = comparison.row, comparison.cells
    scores = pl.concat([context.store.scan(ref, "scores").filter(model=comparison.system).collect() for ref in reports])
    reasons = [
        *comparison.deviations,
        *_partial(context.store, reports[0], comparison.records),
        *_stopped(context.store, reports),
    ]
    printed = [published for published in rows_of(row) if published.protocol != _SPREAD]
    test = None if reasons else partial(compare, margin=comparison.margin, draws=comparison.draws)
    lines = [_lines(scores, published, row, cells, test) for published in printed]
    figures = pl.concat(lines).with_columns(margin=pl.lit(comparison.margin))
    reasons += _other_sets(figures, scores)
    verdict = "NOT COMPARABLE" if reasons else overall(figures["verdict"].to_list())
    title = f"{row} ({', '.join(cells)})" if cells else row
    sentences = [f"{reason}." for reason in reasons]
    sentences += [_seeds_advice(figures)] if verdict == "INCONCLUSIVE" else []
    context.draft.write(figures)
    context.draft.note({"verdict": verdict, "findings": [f"{title}: {verdict}", *sentences]})
    publish(context, reproduction_page(title, verdict, sentences, figures))


def _stopped(store: Store, reports: Sequence[ReportRef]) -> list[str]:
    """Return why trainings were stopped; their figures are those of an earlier or the original encoder."""
    figures = [store.manifest(ref).figures_as(ReportFigures) for ref in reports]
    return [f"training was stopped: {each.reason}" for each in figures if each.verdict == STOPPED]


def _partial(store: Store, report: ReportRef, records: Mapping[str, int]) -> list[str]:
    """Return a reason for each incomplete source of the corpus."""
    inputs = store.manifest(report).provenance.inputs
    counted = store.manifest(CorpusRef(key=inputs["corpus"].key)).figures_as(IngestFigures).sources
    read = {source.name: source.records for source in counted}
    return [
        f"a part of the corpus only: {name} has {read[name]:,} of {total:,} records"
        for name, total in records.items()
        if name in read and read[name] != total
    ]


def _lines(
    scores: pl.DataFrame, published: PublishedRow, row: str, cells: tuple[str, ...], test: Test | None
) -> pl.DataFrame:
    """Return a row of `reproduction` per requested cell; the average is measured only if all its sets are."""
    values = {name: value for name, value in published.values.items() if not cells or name in cells}
    sets = [name for name in values if name != AVERAGE]
    # If only the average is printed, it is over all sets of the table.
    names = sets or [name for name in columns_of(published.suite) if name != AVERAGE]
    seeds = {name: cell for name in names if (cell := _seeds(scores, published, name)) is not None}
    measured = {name: (estimate_over_seeds([rows]), line) for name, (rows, line) in seeds.items()}
    if len(seeds) == len(names) > 1:
        every, signatures = zip(*seeds.values(), strict=True)
        measured[AVERAGE] = estimate_over_seeds(every), joint_signature(signatures)
    lines = [
        {
            "row": row,
            "dataset": name,
            "metric": published.metric,
            "protocol": published.protocol,
            "published": value,
            **_cells(measured.get(name), value, test),
        }
        for name, value in values.items()
    ]
    return pl.DataFrame(lines, schema=REPRODUCTION)


def _seeds(scores: pl.DataFrame, published: PublishedRow, name: str) -> tuple[list[Interval], str] | None:
    """Return a cell's figure of each seed and its signature, on SentEval's tokens if the set itself was not scored."""
    dataset, _, split = name.partition("/")
    place = pl.col("subset").is_in(["all", "mean"]) & pl.col("split").is_in([split] if split else ["test", "all"])
    protocol = _OVER_SEEDS.get(published.protocol, published.protocol)
    if protocol in OVER_SUBSETS and not DATASETS[dataset].divided:
        protocol = "all"
    comparable = scores.filter(place, metric=published.metric, protocol=protocol)
    for form in (dataset, dataset + TOKENISED):
        rows = comparable.filter(dataset=form)
        if rows.height:
            return rows.select("value", "ci_low", "ci_high").rows(), str(rows["signature"][0])
    return None


def _cells(cell: tuple[Estimate, str] | None, published: float, test: Test | None) -> dict[str, object]:
    """Return a cell's measured columns; without a test, or on SentEval's tokens, it is NOT COMPARABLE."""
    if cell is None:
        return {"seeds": 0, "verdict": "NOT COMPARABLE", "signature": ""}
    figure, line = cell
    spread = {
        "value": 100 * figure.mean,
        "sd": None if figure.sd is None else 100 * figure.sd,
        "ci_low": 100 * figure.ci_low,
        "ci_high": 100 * figure.ci_high,
        "seeds": figure.seeds,
    }
    if test is None or f"{TOKENISED}/" in line:
        return {**spread, "verdict": "NOT COMPARABLE", "signature": line}
    found = test(figure, published)
    ends = dict(zip(("seeds_low", "seeds_high"), found.interval or (), strict=False))
    return {**spread, **ends, "verdict": found.verdict, "seeds_needed": found.needed, "signature": line}


def _other_sets(figures: pl.DataFrame, scores: pl.DataFrame) -> list[str]:
    """Return reasons for cells without a figure, or with one on SentEval's tokens."""
    names = figures.filter(pl.col("dataset") != AVERAGE)
    missing = names.filter(seeds=0)["dataset"].unique(maintain_order=True).to_list()
    other = [name for name in names.filter(pl.col("seeds") > 0)["dataset"] if name not in set(scores["dataset"])]
    tokenised = [name for name in other if name + TOKENISED in set(scores["dataset"])]
    return [
        *([f"missing sets: {', '.join(missing)}"] if missing else []),
        *([f"scored on SentEval's tokenised text: {', '.join(tokenised)}"] if tokenised else []),
    ]


def reproduction_page(row: str, verdict: str, sentences: Sequence[str], figures: pl.DataFrame) -> Page:
    """Return the page: the verdict with its reasons, the published and measured figures, the signatures."""
    rows = figures.filter(pl.col("signature") != "").rows(named=True)
    signed = [{"set": row["dataset"], "signature": row["signature"]} for row in rows]
    table = Table.of("Published and measured", figure_rows(figures))
    parts = [
        Part("Figures × 100", [table, Prose(_LEGEND, note=True)]),
        Part("Signatures", [Table.of("Lines to cite with the figures", signed)]),
    ]
    return Page.of_result(row, sentences, _chart(figures), parts, verdict)


def _chart(figures: pl.DataFrame) -> Chart | None:
    """Return each measured figure with its interval above the published one; None without figures."""
    from bsl.tasks.rendering.charts import Mark, score_chart  # matplotlib

    marks = [
        mark
        for row in figures.filter(pl.col("value").is_not_null()).iter_rows(named=True)
        for mark in (
            Mark(row["dataset"], "after", row["value"], row["ci_low"], row["ci_high"]),
            Mark(f"{row['dataset']} (published)", "published", row["published"]),
        )
    ]
    return score_chart(marks, "Figures × 100, with 95 % interval") if marks else None


def _seeds_advice(figures: pl.DataFrame) -> str:
    """Return a sentence on the number of seeds that INCONCLUSIVE figures need for a verdict."""
    inconclusive = figures.filter(verdict="INCONCLUSIVE")
    if (inconclusive["seeds"] == 1).any():
        return "One seed has no standard deviation, so there is no verdict: run two or more, for example --seeds 5."
    counts = inconclusive["seeds_needed"].to_list()
    if None in counts:
        return f"A figure differs from the published one by about the margin: a verdict needs more than {MOST:,} seeds."
    return f"A verdict needs about {max(counts)} seeds if means and deviations stay the same: --seeds {max(counts)}."


def figure_rows(figures: pl.DataFrame) -> list[dict[str, str]]:
    """Return a row per published cell: published, measured, their difference, the interval, the verdict."""
    return [
        {
            "set": row["dataset"],
            "figure": f"{row['metric']}, {row['protocol']}",
            "published": f"{row['published']:.2f}",
            "measured": fixed(row["value"]),
            "difference": MISSING if row["value"] is None else f"{row['value'] - row['published']:+.2f}",
            "sd": fixed(row["sd"]),
            "95 % with pairs": _interval(row["ci_low"], row["ci_high"]),
            "seeds": str(row["seeds"]),
            "90 % over seeds": _interval(row["seeds_low"], row["seeds_high"]),
            "margin": f"{row['margin']:.2f}",
            "verdict": row["verdict"],
            "seeds needed": _needed(row),
        }
        for row in figures.iter_rows(named=True)
    ]


def _interval(low: float | None, high: float | None) -> str:
    return MISSING if low is None or high is None else f"[{low:.2f}, {high:.2f}]"


def _needed(row: Mapping[str, Any]) -> str:
    if row["verdict"] != "INCONCLUSIVE":
        return MISSING
    if row["seeds"] == 1:
        return f"at least {row['seeds_needed']}"
    return f"more than {MOST:,}" if row["seeds_needed"] is None else f"about {row['seeds_needed']}"
