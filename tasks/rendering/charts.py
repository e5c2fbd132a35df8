"""Charts of pages as inline SVG: scores, settings, training curves, cosines.

Shapes: N pairs of a scored set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.ticker import MaxNLocator

from bsl.models.evaluation.signature import PLACE, PRINTED
from bsl.tasks.rendering.svg import AFTER, BASELINE, BEFORE, GRID, MUTED, PUBLISHED, SERIES, inline, plot

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from bsl.tasks.rendering.svg import Chart

ROLES: Final = {"baseline": BASELINE, "before": BEFORE, "after": AFTER, "published": PUBLISHED}
_MARKS: Final = {"baseline": "s", "before": "o", "after": "D", "published": "x"}
_PANELS: Final = (
    ("loss", "Loss", 1),
    ("dev_spearman", "Dev Spearman × 100", 100),
    ("std", "Spread of unit vectors (std × √D)", 1),
    ("effective_rank", "Effective rank", 1),
)
_MANY: Final = 40  # a line with more points has no marks
_CELLS: Final = 24  # bins of a density along each axis
_LABEL: Final = 46  # maximum letters of a system's name in a chart


@dataclass(frozen=True)
class Mark:
    """A system's score in a chart.

    Attributes:
        label: The system.
        role: Key of `ROLES`; other roles take a colour by position, like curves.
        value: The score × 100.
        low: Lower bound of its interval × 100; None for none.
        high: Upper bound.
        line: In a chart along a setting, the name of its line; empty if there is only one.
        place: In such a chart, the setting's value.
        published: The published score × 100; None for none.
    """

    label: str
    role: str
    value: float
    low: float | None = None
    high: float | None = None
    line: str = ""
    place: str = ""
    published: float | None = None


def mark_of(label: str, role: str, value: float, low: float | None, high: float | None) -> Mark:
    """Return a mark for a score and its interval in [-1, 1]."""
    low, high = (None if end is None else 100 * end for end in (low, high))
    return Mark(label, role, 100 * value, low, high)


def score_chart(marks: Sequence[Mark], axis: str, line: float | None = None) -> Chart:
    """Return a chart with a row for each system: its score, and its interval if it has one.

    Args:
        marks: Scores from top to bottom.
        axis: Label of the axis, with the unit.
        line: Reference score × 100, drawn as a line; with 0, scores are differences and have a sign.
    """
    form = "+.2f" if line == 0 else ".1f"
    with plot(0.75 + 0.42 * len(marks)) as figure:
        axes = figure.add_subplot()
        for place, mark in enumerate(marks):
            colour = ROLES.get(mark.role, SERIES[place % len(SERIES)])
            if mark.low is not None and mark.high is not None:
                axes.hlines(place, mark.low, mark.high, color=colour, linewidth=2.5)
            axes.plot(
                [mark.value], [place], marker=_MARKS.get(mark.role, "o"), markersize=7, color=colour, linestyle=""
            )
            axes.annotate(
                f"{_clipped(mark.label)}  {mark.value:{form}}",
                (mark.value, place),
                xytext=(0, 8),
                textcoords="offset points",
                ha="center",
                fontsize=9,
                annotation_clip=False,
            )
        ends = [end for mark in marks for end in (mark.value, mark.low, mark.high, line) if end is not None]
        # Names are centred above their marks, and need a minimum width of the axis.
        middle, half = (min(ends) + max(ends)) / 2, max(max(ends) - min(ends), 4.0)
        axes.set_xlim(middle - half, middle + half)
        axes.set_ylim(len(marks) - 0.5, -0.9)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_xlabel(axis)
        if line is not None:
            axes.axvline(line, color=MUTED, linewidth=1, zorder=0)
        summary = "; ".join(f"{mark.label}: {mark.value:{form}}" for mark in marks)
        return inline(figure, "scores", f"{axis}. {summary}")


def setting_chart(marks: Sequence[Mark], axis: str, name: str) -> Chart:
    """Return a chart of a score along one setting, with intervals and published scores.

    The marks are in the order of the setting's values; `axis` is its name, `name` the title of the chart.
    """
    places = list(dict.fromkeys(mark.place for mark in marks))
    lines = list(dict.fromkeys(mark.line for mark in marks))
    with plot(3.2) as figure:
        axes = figure.add_subplot()
        for line, colour in zip(lines, cycled(len(lines)), strict=True):
            on_line = [(places.index(mark.place), mark) for mark in marks if mark.line == line]
            at, values = zip(*((spot, mark.value) for spot, mark in on_line), strict=True)
            axes.plot(at, values, marker="o", markersize=4, color=colour, label=line or "measured")
            for spot, mark in on_line:
                if mark.low is not None and mark.high is not None:
                    axes.vlines(spot, mark.low, mark.high, color=colour, linewidth=1.5)
            if printed := [(spot, mark.published) for spot, mark in on_line if mark.published]:
                label = f"{line} published".strip()
                axes.plot(
                    *zip(*printed, strict=True), marker="x", linestyle="--", linewidth=1, color=colour, label=label
                )
        axes.set_xticks(range(len(places)), places)
        axes.set_xlabel(axis)
        axes.set_title(name, loc="left")
        if len(axes.get_legend_handles_labels()[1]) > 1:
            axes.legend()
        summary = "; ".join(f"{mark.label}: {mark.value:.1f}" for mark in marks)
        return inline(figure, "setting", f"{name} by {axis}. {summary}")


def system_chart(scores: pl.DataFrame) -> Chart | None:
    """Return a chart of every system's Spearman correlation on the last test set of scored pairs.

    Without such a set, the first score of the tables is drawn; without scores the result is None.
    """
    printed = scores.filter(PRINTED)
    tests = printed.filter(split="test", metric="spearman", protocol="all")
    if not printed.height:
        return None
    place = tests.row(-1, named=True) if tests.height else printed.row(0, named=True)
    return figure_chart(scores, place, dict.fromkeys(printed["model"], "system"), [])


def figure_chart(
    scores: pl.DataFrame, place: Mapping[str, Any], roles: Mapping[str, str], others: Sequence[Mark]
) -> Chart:
    """Return a chart of every system's score on one set, with intervals.

    `place` is a row of `scores` with the set; `roles` maps systems to roles; `others` are further marks, such as
    published scores.
    """
    rows = scores.filter(**{name: place[name] for name in (*PLACE, "subset")}).unique("model", maintain_order=True)
    marks = [
        mark_of(model, roles[model], value, *ends)
        for model, value, *ends in rows.select("model", "value", "ci_low", "ci_high").rows()
    ]
    axis = f"{place['metric'].capitalize()} × 100 on {place['dataset']} {place['split']}, with 95 % interval"
    return score_chart([*marks, *others], axis)


def training_charts(logs: Mapping[str, pl.DataFrame]) -> list[Chart]:
    """Return charts of trainings (name → log): each quantity by step, and the plane of alignment and uniformity."""
    curves = training_curves(logs)
    return [*curves, *([_plane(logs)] if any(log["uniformity"].count() for log in logs.values()) else [])]


def training_curves(logs: Mapping[str, pl.DataFrame], most: int | None = None) -> list[Chart]:
    """Return at most `most` charts of the logged quantities by step, loss and dev score first."""
    seen = [panel for panel in _PANELS if any(log[panel[0]].count() for log in logs.values())]
    return [_curve(logs, column, title, scale) for column, title, scale in seen[:most]]


def _curve(logs: Mapping[str, pl.DataFrame], column: str, title: str, scale: int) -> Chart:
    with plot(2.6) as figure:
        axes = figure.add_subplot()
        for (name, log), colour in zip(logs.items(), cycled(len(logs)), strict=True):
            points = log.select("step", column).drop_nulls()
            mark = "o" if points.height <= _MANY else ""
            values = points[column].to_numpy() * scale
            axes.plot(points["step"].to_numpy(), values, marker=mark, markersize=3.5, color=colour, label=name)
        axes.set_title(title, loc="left")
        axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
        axes.set_xlabel("step")
        _legend(axes, len(logs))
        return inline(figure, f"curve-{column.replace('_', '-')}", f"{title} by step of training")


def _plane(logs: Mapping[str, pl.DataFrame]) -> Chart:
    with plot(2.9) as figure:
        axes = figure.add_subplot()
        named: set[tuple[float, ...]] = set()  # labelled points; runs with the same start share the first
        for (name, log), colour in zip(logs.items(), cycled(len(logs)), strict=True):
            points = log.select("step", "uniformity", "alignment").drop_nulls()
            across, up = points["uniformity"].to_numpy(), points["alignment"].to_numpy()
            axes.plot(across, up, marker="o", markersize=4, linewidth=1, color=colour, label=name)
            for step, x, y in sorted({points.row(0), points.row(-1)} - named):
                above = 5 if y >= up.mean() else -11  # away from the line between the two
                axes.annotate(f"step {step}", (x, y), xytext=(4, above), textcoords="offset points", fontsize=9)
            named |= {points.row(0), points.row(-1)}
        axes.margins(0.12)
        left, right = axes.get_xlim()
        axes.set_xlim(left, right + 0.15 * (right - left))  # room for the step labels
        axes.locator_params(axis="x", nbins=5)  # uniformity has long tick labels
        axes.set_title("Alignment and uniformity of pairs (lower is better, both)", loc="left")
        axes.set_xlabel("uniformity")
        axes.set_ylabel("alignment")
        _legend(axes, len(logs))
        return inline(
            figure, "plane", "Alignment and uniformity, one point per evaluation, from the first to the last step"
        )


def cosine_charts(name: str, gold: NDArray[np.float64], cosines: Mapping[str, NDArray[np.float64]]) -> list[Chart]:
    """Return a density chart of gold score and cosine for each system, and a histogram of the cosines.

    Gold scores and cosines are (N,); the encoder before training comes first. The name is part of the charts' ids.
    """
    roles = dict(zip(cosines, (BEFORE, AFTER), strict=False))
    low, high = min(map(np.min, cosines.values())), max(map(np.max, cosines.values()))
    densities = [
        _density(f"density-{name}-{number}", system, roles[system], gold, values)
        for number, (system, values) in enumerate(cosines.items())
    ]
    with plot(2.3) as figure:
        axes = figure.add_subplot()
        edges = np.linspace(low, high, 41).tolist()
        for system, values in cosines.items():
            axes.hist(values, edges, histtype="stepfilled", alpha=0.25, color=roles[system])
            axes.hist(values, edges, histtype="step", linewidth=1.5, color=roles[system], label=_clipped(system))
        axes.set_xlabel("cosine")
        axes.set_ylabel("pairs")
        axes.set_title("Histogram of cosines", loc="left")
        # Space for the legend above the bars.
        axes.set_ylim(0, axes.get_ylim()[1] * 1.35)
        axes.legend(loc="upper left")
        return [*densities, inline(figure, f"cosines-{name}", f"Histogram of the cosines of {', '.join(cosines)}")]


def _density(name: str, system: str, colour: str, gold: NDArray[np.float64], cosines: NDArray[np.float64]) -> Chart:
    """Return a chart of the density of pairs (darker squares have more), and the mean cosine by gold score."""
    with plot(2.8) as figure:
        axes = figure.add_subplot()
        counts, across, up = np.histogram2d(gold, cosines, _CELLS)
        places = np.argwhere(counts > 0)
        corners = [[(across[x + i], up[y + j]) for i, j in ((0, 0), (1, 0), (1, 1), (0, 1))] for x, y in places]
        shades = [to_rgba(colour, 0.12 + 0.88 * np.sqrt(counts[x, y] / counts.max())) for x, y in places]
        axes.add_collection(PolyCollection(corners, facecolors=shades, linewidths=0))
        cuts = np.linspace(gold.min(), gold.max(), 9)
        place = np.clip(np.digitize(gold, cuts) - 1, 0, 7)
        full = [cell for cell in range(8) if (place == cell).any()]
        means = [float(cosines[place == cell].mean()) for cell in full]
        axes.plot([(cuts[cell] + cuts[cell + 1]) / 2 for cell in full], means, color=MUTED, linewidth=1.5, marker=".")
        axes.set_xlim(across[0], across[-1])
        axes.set_ylim(up[0], up[-1])
        axes.set_title(_clipped(system), loc="left")
        axes.set_xlabel("gold score")
        axes.set_ylabel("cosine")
        axes.grid(color=GRID)
        return inline(figure, name, f"Cosine by gold score, {system}: density of pairs, and the mean as a line")


def cycled(number: int) -> list[str]:
    """Return a colour for each of several lines."""
    return [SERIES[place % len(SERIES)] for place in range(number)]


def _legend(axes: Axes, lines: int) -> None:
    if lines > 1:
        axes.legend()


def _clipped(label: str) -> str:
    return label if len(label) <= _LABEL else f"{label[: _LABEL - 1]}…"
