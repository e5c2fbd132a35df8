"""A study as a picture: the figure along one setting, with intervals, beside what the paper printed."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Final

import polars as pl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from models.evaluation.study import MEAN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

# Okabe and Ito's colours, which the colour-blind can tell apart.
_COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def study_plot(table: pl.DataFrame, points: Sequence[Mapping[str, Any]], title: str, axis: str) -> bytes:
    """PNG; equal tables give equal bytes.

    Args:
        table: the table `study`.
        points: label, line, place and published figure of each point.
        title: drawn above.
        axis: name of the horizontal axis.
    """
    shown = _shown(table)
    figure = Figure(figsize=(7.5, 4.5), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    places = list(dict.fromkeys(point["place"] for point in points))
    for number, line in enumerate(dict.fromkeys(point["line"] for point in points)):
        members = [point for point in points if point["line"] == line]
        _draw(axes, table.filter(dataset=shown), members, places, _COLOURS[number % len(_COLOURS)])
    axes.set_xticks(range(len(places)), places)
    axes.set_xlabel(axis)
    axes.set_ylabel(f"{shown}, × 100")
    axes.set_title(title, fontsize=11)
    axes.grid(visible=True, alpha=0.3)
    axes.legend(fontsize=8)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def _shown(table: pl.DataFrame) -> str:
    """The mean of all sets if there is one, else the last set: test sets follow development sets."""
    names = table.filter(pl.col("metric") == "spearman")["dataset"].unique(maintain_order=True).to_list()
    return MEAN if MEAN in names else str((names or table["dataset"].to_list())[-1])


def _draw(
    axes: Axes, table: pl.DataFrame, points: Sequence[Mapping[str, Any]], places: Sequence[str], colour: str
) -> None:
    rows = {row["label"]: row for row in table.iter_rows(named=True)}
    known = [point for point in points if point["label"] in rows]
    at = [places.index(point["place"]) for point in known]
    means = [100 * rows[point["label"]]["mean"] for point in known]
    axes.plot(at, means, marker="o", markersize=4, linewidth=1.2, color=colour, label=points[0]["line"] or "measured")
    intervals = [(rows[point["label"]]["ci_low"], rows[point["label"]]["ci_high"]) for point in known]
    ends = [(spot, low, high) for spot, (low, high) in zip(at, intervals, strict=True) if low is not None]
    if ends:
        spots, lows, highs = zip(*ends, strict=True)
        axes.vlines(spots, [100 * low for low in lows], [100 * high for high in highs], color=colour, linewidth=1)
    printed = [point for point in points if point["published"] is not None]
    if printed:
        at = [places.index(point["place"]) for point in printed]
        values = [point["published"] for point in printed]
        label = f"{points[0]['line']} published".strip()
        axes.plot(at, values, marker="x", linestyle="--", linewidth=1, color=colour, label=label)
