"""Reports of several seeds to one comparison with a published row."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import polars as pl

from models.evaluation.published import AVERAGE, columns_of, rows_of
from models.report.reproduction import reproduction_page
from storage.artifacts.refs import CorpusRef, ReportRef, ReproductionRef
from storage.artifacts.schemas import REPRODUCTION
from tasks.stage.cached import StageInputs, Work, stage
from tasks.stage.ui import show_markdown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from models.evaluation.published import PublishedRow
    from models.evaluation.reproduction import Comparison, Measured
    from storage.artifacts.store import Store

    Test = Callable[[Measured, float], Comparison]

PAGE: Final = "reproduction.md"
TOKENISED: Final = "-tok"  # SentEval's form of a set's text
_SPREAD: Final = "supervised-sd"  # between seeds, which is no figure to be reached
_OVER_SEEDS: Final = {"supervised-mean": "all"}  # of runs that are tuned on the set, a seed each


class RowComparison(StageInputs):
    """A published row, and how runs are compared with it."""

    row: str
    """Name of the row."""
    cells: tuple[str, ...]
    """Sets that are compared, if other runs have the others; all if empty."""
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


@stage(ref=ReproductionRef, version=4)
def reproduce(work: Work, reports: tuple[ReportRef, ...], asked: RowComparison) -> None:
    """Set the figures of a row's recipe beside the row.

    Args:
        work: the stage's.
        reports: a run a seed.
        asked: the row, and how runs are compared with it.
    """
    from models.evaluation.reproduction import compare, overall

    row, cells = asked.row, asked.cells
    scores = pl.concat([work.store.scan(ref, "scores").filter(model=asked.system).collect() for ref in reports])
    why = [*asked.deviations, *_partial(work.store, reports[0], asked.records)]
    printed = [published for published in rows_of(row) if published.protocol != _SPREAD]
    test = None if why else partial(compare, margin=asked.margin, draws=asked.draws)
    lines = [_lines(scores, published, row, cells, test) for published in printed]
    figures = pl.concat(lines).with_columns(margin=pl.lit(asked.margin))
    why += _other_sets(figures, scores)
    verdict = "NOT COMPARABLE" if why else overall(figures["verdict"].to_list())
    title = f"{row} ({', '.join(cells)})" if cells else row
    page = reproduction_page(title, verdict, why, figures)
    work.draft.write(figures)
    (work.draft.folder / PAGE).write_text(page, encoding="utf-8")
    show_markdown("reproduction", page, f"{title}: {verdict}")


def _partial(store: Store, report: ReportRef, records: Mapping[str, int]) -> list[str]:
    """Sources of the corpus that were there in part."""
    inputs = store.manifest(report).provenance.inputs
    counted = store.manifest(CorpusRef(key=inputs["corpus"].key)).figures["sources"]
    assert isinstance(counted, list)  # as ingest notes them
    read = {source["name"]: source["records"] for source in counted if isinstance(source, dict)}
    return [
        f"a part of the corpus only: {name} has {read[name]:,} of {whole:,} records"
        for name, whole in records.items()
        if name in read and read[name] != whole
    ]


def _lines(
    scores: pl.DataFrame, published: PublishedRow, row: str, cells: tuple[str, ...], test: Test | None
) -> pl.DataFrame:
    """A row of `reproduction` for each cell that is wanted, and for the average if that is printed and all are."""
    from models.evaluation.reproduction import average
    from models.evaluation.signature import joint_signature

    values = {name: value for name, value in published.values.items() if not cells or name in cells}
    own = [name for name in values if name != AVERAGE]
    # Of some rows the mean alone is printed: then it is of all sets of the table.
    names = own or [name for name in columns_of(published.suite) if name != AVERAGE]
    measured = {name: _measured(scores, published, name) for name in names}
    there = [figure for figure in measured.values() if figure is not None]
    if len(there) == len(measured) > 1:
        measured[AVERAGE] = average([figure for figure, _ in there]), joint_signature([line for _, line in there])
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


def _measured(scores: pl.DataFrame, published: PublishedRow, name: str) -> tuple[Measured, str] | None:
    """A cell's figure over seeds and its signature; of another form of the set's text where the set's own is absent."""
    from models.evaluation.reproduction import measured

    dataset, _, split = name.partition("/")
    place = pl.col("subset").is_in(["all", "mean"]) & pl.col("split").is_in([split] if split else ["test", "all"])
    protocol = _OVER_SEEDS.get(published.protocol, published.protocol)
    alike = scores.filter(place, metric=published.metric, protocol=protocol)
    for form in (dataset, dataset + TOKENISED):
        rows = alike.filter(dataset=form)
        if rows.height:
            return measured(rows.select("value", "ci_low", "ci_high").rows()), str(rows["signature"][0])
    return None


def _cells(cell: tuple[Measured, str] | None, published: float, test: Test | None) -> dict[str, object]:
    """The columns of a cell that are measured; without a test, or of another form of text, it is not comparable."""
    if cell is None:
        return {"seeds": 0, "verdict": "NOT COMPARABLE", "signature": ""}
    figure, line = cell
    low, high = figure.interval
    spread = {"value": figure.mean, "sd": figure.sd, "ci_low": low, "ci_high": high, "seeds": len(figure.values)}
    if test is None or f"{TOKENISED}/" in line:
        return {**spread, "verdict": "NOT COMPARABLE", "signature": line}
    found = test(figure, published)
    ends = dict(zip(("seeds_low", "seeds_high"), found.interval or (), strict=False))
    return {**spread, **ends, "verdict": found.verdict, "seeds_needed": found.needed, "signature": line}


def _other_sets(figures: pl.DataFrame, scores: pl.DataFrame) -> list[str]:
    """Cells of the row without a figure, or with that of another form of text."""
    names = figures.filter(pl.col("dataset") != AVERAGE)
    absent = names.filter(seeds=0)["dataset"].unique(maintain_order=True).to_list()
    forms = [name for name in names.filter(pl.col("seeds") > 0)["dataset"] if name not in set(scores["dataset"])]
    tokenised = [name for name in forms if name + TOKENISED in set(scores["dataset"])]
    return [
        *([f"sets missing: {', '.join(absent)}"] if absent else []),
        *([f"another form of text: SentEval's tokens for {', '.join(tokenised)}"] if tokenised else []),
    ]
