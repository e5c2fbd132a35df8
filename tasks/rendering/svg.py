"""Matplotlib figures as inline SVG in the page's colours, light or dark.

Figures are drawn in the placeholder colours of `COLOURS`. The SVG has CSS variables in their place, which the page's
style sheet sets. Text stays text, in the page's font.
"""

from __future__ import annotations

import io
import re
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from bsl.storage.filesystem.control_characters import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

INK, MUTED, GRID = "#010101", "#020202", "#030303"
# Named by their use; their values in style.css are Okabe and Ito's palette, which colour-blind readers can distinguish.
BEFORE, AFTER, BASELINE, PUBLISHED = "#110101", "#110202", "#110303", "#110404"
SERIES: Final = (AFTER, BEFORE, PUBLISHED, "#110505", "#110606", BASELINE)
COLOURS: Final = {
    INK: "ink", MUTED: "muted", GRID: "grid", BEFORE: "before", AFTER: "after", BASELINE: "baseline",
    PUBLISHED: "published", "#110505": "fifth", "#110606": "sixth",
}  # fmt: skip
WIDTH: Final = 5.0  # inches, 360 units: letters are readable on a phone

_STYLE: Final[Any] = {  # matplotlib types every key
    "svg.fonttype": "none", "svg.hashsalt": "bsl", "font.size": 10, "text.color": INK, "axes.labelcolor": INK,
    "axes.edgecolor": MUTED, "axes.titlecolor": INK, "axes.titlesize": 10, "xtick.color": MUTED, "ytick.color": MUTED,
    "xtick.labelcolor": INK, "ytick.labelcolor": INK, "grid.color": GRID, "axes.grid": True, "axes.axisbelow": True,
    "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False, "text.parse_math": False,
    "grid.linewidth": 0.6, "legend.fontsize": 9, "figure.facecolor": "none", "axes.facecolor": "none",
}  # fmt: skip
_COLOUR: Final = re.compile("|".join(COLOURS))
_NAMES: Final = re.compile(r'(\bid="|url\(#|href="#)')
_FONT: Final = re.compile(r"font: (?:bold )?([\d.]+px)[^;\"]*")


@cache
def template(name: str) -> str:
    """Return the text of a file of templates/: the template or the style sheet of pages."""
    return files("bsl.tasks.rendering").joinpath("templates", name).read_text(encoding="utf-8")


@dataclass(frozen=True)
class Chart:
    """A drawn chart.

    Its name begins all ids in the SVG element, so that several charts fit in one page; screen readers read the label.
    """

    name: str
    label: str
    svg: str

    @property
    def file(self) -> str:
        """Name of its file next to a page."""
        return f"{self.name}.svg"

    def standalone(self) -> str:
        """Return the SVG file: the element with the page's colours, light and dark."""
        colours = template("style.css").partition("* {")[0]
        style = f"{colours}:root {{ background: var(--paper); font-family: system-ui, sans-serif; }}"
        opening, inside = self.svg.split(">", 1)
        named = opening.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg" width="640"')
        return f"{named}>\n<style>\n{style}\n</style>{inside}\n"


@contextmanager
def plot(height: float) -> Iterator[Figure]:
    """Yield a new figure of width `WIDTH`, in the style that `inline` needs; `height` is in inches."""
    with mpl.rc_context(_STYLE):
        yield Figure(figsize=(WIDTH, height), layout="constrained")


def inline(figure: Figure, name: str, label: str) -> Chart:
    """Return a figure as an element of HTML; equal figures give equal text.

    It is drawn within `plot`, in the colours of `COLOURS`. The label describes it for screen readers.
    """
    buffer = io.StringIO()
    canvas = FigureCanvasSVG(figure)
    # `Figure.savefig` draws every figure twice.
    unstated = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    canvas.print_svg(buffer, metadata=unstated)  # type: ignore[no-untyped-call]
    drawn = buffer.getvalue()
    body = drawn[drawn.index(">", drawn.index("<svg")) + 1 :].strip()
    body = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", body, flags=re.DOTALL)
    body = _NAMES.sub(rf"\1{name}-", body.replace("xlink:href", "href"))
    body = _FONT.sub(r"font-size: \1", _COLOUR.sub(lambda found: f"var(--{COLOURS[found[0]]})", body))
    width, height = (72 * side for side in figure.get_size_inches())
    opening = f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(label)}">'
    return Chart(name, label, visible(opening + body))
