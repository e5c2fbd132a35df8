"""The tables of a run's page: scores in the papers' layout, differences, stages, pairs that tell something.

Shapes: N pairs of a scored set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from models.evaluation.correlation import average_ranks
from models.report.html import Cell, Line, Station, Table, Way
from models.report.page import score_rows
from models.report.sizes import sized
from models.report.tables import MISSING, paper_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl
    from numpy.typing import NDArray

    from models.evaluation.published import PublishedRow
    from models.report.run_content import Artifact, ComparedSet
    from models.report.tables import PaperTable

    Figures = Mapping[str, Mapping[str, Any]]

PAIRS: Final = 6
_KIND_ORDER: Final = (
    "corpus", "nli", "passages", "views", "pairs", "checkpoint", "embeddings", "transform", "scores", "comparison",
)  # fmt: skip


def score_tables(
    scores: pl.DataFrame, tables: Sequence[PaperTable], published: Sequence[PublishedRow], result: str
) -> Iterator[Table]:
    """The papers' tables, of the sets that were scored alone; below, what is published, and how far the run is off."""
    for table in tables:
        lines = list(paper_lines(table, scores))
        columns = [(name, heading) for name, heading in table.columns if any(name in line for _, line in lines)]
        if not columns:
            continue
        whole = len(columns) == len(table.columns) > 1
        heads = ["system", "figure", *(heading for _, heading in columns), *([table.average] if whole else [])]
        names = [name for name, _ in columns]
        rows = [
            Line([Cell(model), Cell(figure), *_measured(line, names, whole=whole)]) for (model, figure), line in lines
        ]
        for (model, figure), line in lines:
            if model == result:
                rows += [
                    both
                    for row in _beside(published, names, figure)
                    for both in (_printed(row, names, whole=whole), _less(row, line, names, whole=whole))
                ]
        yield Table(f"{table.title}: figures × 100 with 95 % interval", heads, rows)


def _measured(line: Figures, names: Sequence[str], *, whole: bool) -> Iterator[Cell]:
    for name in names:
        row = line.get(name)
        if row is None:
            yield Cell(MISSING)
        else:
            low, high = row["ci_low"], row["ci_high"]
            yield Cell(f"{100 * row['value']:.2f}", "" if low is None else f"{100 * low:.1f} to {100 * high:.1f}")
    if whole:
        mean = _mean([row["value"] for row in line.values()]) if set(names) <= set(line) else None
        yield Cell(MISSING if mean is None else f"{100 * mean:.2f}")


def _beside(published: Sequence[PublishedRow], names: Sequence[str], figure: str) -> list[PublishedRow]:
    """A system's first row with that figure, of those that have one of the columns."""
    rows: dict[str, PublishedRow] = {}
    for row in published:
        if f"{row.metric}, {row.protocol}" == figure and set(names) & set(row.values):
            rows.setdefault(row.system, row)
    return list(rows.values())


def _printed(row: PublishedRow, names: Sequence[str], *, whole: bool) -> Line:
    cells = [Cell(row.cells.get(name) or MISSING) for name in names]
    mean = _mean([row.values[name] for name in names]) if whole and set(names) <= set(row.values) else None
    end = [Cell(MISSING if mean is None else f"{mean:.2f}")] if whole else []
    return Line([Cell(f"{row.system}: {row.source}"), Cell("published"), *cells, *end], "published")


def _less(row: PublishedRow, line: Figures, names: Sequence[str], *, whole: bool) -> Line:
    gaps = {name: 100 * line[name]["value"] - row.values[name] for name in names if name in line and name in row.values}
    cells = [Cell(f"{gaps[name]:+.2f}" if name in gaps else MISSING) for name in names]
    end = [Cell(f"{_mean(list(gaps.values())):+.2f}" if len(gaps) == len(names) else MISSING)] if whole else []
    return Line([Cell(f"this run less {row.system}"), Cell("difference"), *cells, *end], "difference")


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def all_scores(scores: pl.DataFrame) -> Table:
    """Every figure with its interval, a column a system."""
    return Table.of("All figures × 100 with their 95 % intervals", score_rows(scores))


def stage_table(artifacts: Sequence[Artifact]) -> Table:
    """What each stage took, and its share of all; what was found made took its time before."""
    total = sum(artifact.seconds for artifact in artifacts) or 1.0
    rows = [
        {
            "stage": artifact.stage.replace("_", " "),
            "of": artifact.system or MISSING,
            "artifact": f"{artifact.kind}/{artifact.key[:12]}",
            "rows": f"{artifact.rows:,}",
            "size": sized(artifact.size),
            "seconds": f"{artifact.seconds:,.1f}",
            "share": f"{100 * artifact.seconds / total:.1f} %",
            "in this run": "made" if artifact.made else "cached",
        }
        for artifact in artifacts
    ]
    return Table.of("Stages: what each made, and the time that making it took", rows)


def way(artifacts: Sequence[Artifact]) -> Way:
    """The artifacts by kind, in the order in which the data flows."""
    kinds = sorted({artifact.kind for artifact in artifacts}, key=_place)
    names = {f"{artifact.kind}/{artifact.key}": artifact for artifact in artifacts}
    return Way([[_station(one, names) for one in artifacts if one.kind == kind] for kind in kinds])


def _station(artifact: Artifact, names: Mapping[str, Artifact]) -> Station:
    made_from = [f"{names[path].kind} {names[path].key[:6]}" for path in artifact.inputs if path in names]
    lines = [
        *([f"of {artifact.system}"] if artifact.system else []),
        artifact.key[:12],
        " · ".join(filter(None, [f"{artifact.rows:,} rows" if artifact.rows else "", sized(artifact.size)])),
        *([f"from {', '.join(made_from)}"] if made_from else []),
    ]
    return Station(artifact.kind, lines, artifact.made)


def _place(kind: str) -> int:
    return _KIND_ORDER.index(kind) if kind in _KIND_ORDER else len(_KIND_ORDER)


def pair_tables(scored: ComparedSet, systems: Sequence[str]) -> Iterator[Table]:
    """Pairs that the last of some systems puts farthest from, and nearest to, their place by gold score.

    Args:
        scored: the set.
        systems: the one before training and the one after, or one alone.
    """
    gold = scored.pairs["score"].to_numpy()
    places = {system: _percentiles(scored.cosines[system]) for system in systems}
    wanted = _percentiles(gold)
    error = np.abs(places[systems[-1]] - wanted)
    # Of equals the longer texts say more.
    letters = scored.pairs.select(n=scored.pairs["sentence1"].str.len_chars()).to_series().to_numpy()
    worst = np.lexsort((-letters, -error))[:PAIRS]
    best = np.lexsort((-letters, np.round(error)))[:PAIRS]
    yield _pairs(f"{scored.name}: farthest from their place by gold score", scored, worst, wanted, places)
    yield _pairs(f"{scored.name}: at their place by gold score", scored, best, wanted, places)
    if len(systems) > 1:
        gain = np.abs(places[systems[0]] - wanted) - error
        gained = np.argsort(-gain, kind="stable")[:PAIRS]
        yield _pairs(f"{scored.name}: moved most towards their place by training", scored, gained, wanted, places)


def _percentiles(values: NDArray[np.floating]) -> NDArray[np.float64]:
    """Ranks from 0 to 100, (N,)."""
    scaled: NDArray[np.float64] = 100 * (average_ranks(values.astype(np.float64)) - 1) / max(len(values) - 1, 1)
    return scaled


def _pairs(
    title: str,
    scored: ComparedSet,
    chosen: NDArray[np.integer],
    wanted: NDArray[np.float64],
    places: Mapping[str, NDArray[np.float64]],
) -> Table:
    roles = ("before", "after") if len(places) > 1 else ("encoder",)
    rows = []
    for number in chosen.tolist():
        row = scored.pairs.row(number, named=True)
        texts = {"sentence 1": row["sentence1"], "sentence 2": row["sentence2"], "gold": f"{row['score']:.2f}"}
        cosines = {
            f"cosine {role}": f"{scored.cosines[system][number]:.3f}"
            for role, system in zip(roles, places, strict=True)
        }
        last = list(places.values())[-1][number]
        rows.append({**texts, **cosines, "place by gold": f"{wanted[number]:.0f}", "by cosine": f"{last:.0f}"})
    return Table.of(f"{title}; places from 0, least alike, to 100", rows)
