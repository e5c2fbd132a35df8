"""A study as a picture: the figure along one setting, with intervals, beside what the paper printed.

Values of a setting stand in their order on a horizontal axis and are joined by a line. Systems have no order, so each
has a row of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from matplotlib.figure import Figure

from models.report.png import png
from models.report.study import shown_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl
    from matplotlib.axes import Axes

    Point = Mapping[str, Any]

# Okabe and Ito's colours, which the colour-blind can tell apart.
_COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def study_plot(table: pl.DataFrame, points: Sequence[Point], title: str, axis: str, shown: str) -> bytes:
    """PNG; equal tables give equal bytes.

    Args:
        table: the table `study`.
        points: label, line, place and published figure of each point.
        title: drawn above.
        axis: name of the setting; `recipe` if the points are systems.
        shown: the set that is drawn.
    """
    figure = Figure(figsize=(7.5, 4.5), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    drawn = shown_rows(table, shown).drop_nulls("mean")
    rows = {row["label"]: row for row in drawn.iter_rows(named=True)}
    known = [point for point in points if point["label"] in rows]
    if axis == "recipe":
        figure.set_size_inches(7.5, 1.5 + 0.28 * len(known))
        _rows(axes, rows, known)
        axes.set_xlabel(f"{shown}, × 100")
    else:
        _lines(axes, rows, known, list(dict.fromkeys(point["place"] for point in points)))
        axes.set_xlabel(axis)
        axes.set_ylabel(f"{shown}, × 100")
    axes.set_title(title, fontsize=10, parse_math=False, wrap=True)
    axes.grid(visible=True, alpha=0.3)
    axes.legend(fontsize=8)
    return png(figure)


def _rows(axes: Axes, rows: Mapping[str, Mapping[str, Any]], points: Sequence[Point]) -> None:
    places = {point["label"]: place for place, point in enumerate(points)}
    means = [100 * rows[label]["mean"] for label in places]
    axes.plot(means, list(places.values()), marker="o", markersize=4, linestyle="", color=_COLOURS[0], label="measured")
    for label, place in places.items():
        low, high = rows[label]["ci_low"], rows[label]["ci_high"]
        if low is not None:
            axes.hlines(place, 100 * low, 100 * high, color=_COLOURS[0], linewidth=1)
    printed = [(point["published"], places[point["label"]]) for point in points if point["published"] is not None]
    if printed:
        figures, at = zip(*printed, strict=True)
        axes.plot(
            figures, at, marker="x", linestyle="", color=_COLOURS[1], label="published, with its own encoder and sets"
        )
    axes.set_yticks(list(places.values()), list(places))
    axes.invert_yaxis()


def _lines(axes: Axes, rows: Mapping[str, Mapping[str, Any]], points: Sequence[Point], places: Sequence[str]) -> None:
    for number, line in enumerate(dict.fromkeys(point["line"] for point in points)):
        _line(
            axes, rows, [point for point in points if point["line"] == line], places, _COLOURS[number % len(_COLOURS)]
        )
    axes.set_xticks(range(len(places)), places)


def _line(
    axes: Axes, rows: Mapping[str, Mapping[str, Any]], points: Sequence[Point], places: Sequence[str], colour: str
) -> None:
    at = [places.index(point["place"]) for point in points]
    means = [100 * rows[point["label"]]["mean"] for point in points]
    axes.plot(at, means, marker="o", markersize=4, linewidth=1.2, color=colour, label=points[0]["line"] or "measured")
    for spot, point in zip(at, points, strict=True):
        low, high = rows[point["label"]]["ci_low"], rows[point["label"]]["ci_high"]
        if low is not None:
            axes.vlines(spot, 100 * low, 100 * high, color=colour, linewidth=1)
    printed = [point for point in points if point["published"] is not None]
    if printed:
        at = [places.index(point["place"]) for point in printed]
        label = f"{points[0]['line']} published".strip()
        values = [point["published"] for point in printed]
        axes.plot(at, values, marker="x", linestyle="--", linewidth=1, color=colour, label=label)
