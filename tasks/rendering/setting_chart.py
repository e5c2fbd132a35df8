"""The chart of a figure along one setting, as inline SVG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tasks.rendering.charts import Mark, cycled
from tasks.rendering.svg import inline, new_figure, styled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from tasks.rendering.svg import Chart


@dataclass(frozen=True)
class SettingPoint:
    """A mark along a setting.

    Attributes:
        line: the line that joins it with others; empty if there is only one.
        place: its value of the setting.
        mark: the figure.
        published: the paper's figure × 100; None where none is printed.
    """

    line: str
    place: str
    mark: Mark
    published: float | None


def setting_chart(points: Sequence[SettingPoint], axis: str, figure_name: str) -> Chart:
    """Return a figure along one setting, with intervals and the papers' figures.

    Args:
        points: in the order of the setting's values.
        axis: name of the setting.
        figure_name: what is drawn.
    """
    places = list(dict.fromkeys(point.place for point in points))
    lines = list(dict.fromkeys(point.line for point in points))
    with styled():
        figure = new_figure(3.2)
        axes = figure.add_subplot()
        for line, colour in zip(lines, cycled(len(lines)), strict=True):
            own = [point for point in points if point.line == line]
            at = [places.index(point.place) for point in own]
            axes.plot(
                at,
                [point.mark.value for point in own],
                marker="o",
                markersize=4,
                color=colour,
                label=line or "measured",
            )
            for spot, point in zip(at, own, strict=True):
                if point.mark.low is not None and point.mark.high is not None:
                    axes.vlines(spot, point.mark.low, point.mark.high, color=colour, linewidth=1.5)
            printed = [(spot, point.published) for spot, point in zip(at, own, strict=True) if point.published]
            if printed:
                _published_line(axes, printed, f"{line} published".strip(), colour)
        axes.set_xticks(range(len(places)), places)
        axes.set_xlabel(axis)
        axes.set_title(figure_name, loc="left")
        if len(axes.get_legend_handles_labels()[1]) > 1:
            axes.legend()
        told = "; ".join(f"{point.mark.label}: {point.mark.value:.1f}" for point in points)
        return inline(figure, "setting", f"{figure_name} by {axis}. {told}")


def _published_line(axes: Axes, printed: Sequence[tuple[int, float]], label: str, colour: str) -> None:
    across, up = zip(*printed, strict=True)
    axes.plot(across, up, marker="x", linestyle="--", linewidth=1, color=colour, label=label)
