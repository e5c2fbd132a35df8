"""The methods of a field as a picture: a panel a proof, a line a method, the encoder as it is as the mark to pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from matplotlib.figure import Figure

from models.evaluation.field import TEXT
from models.report.png import png

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl
    from matplotlib.axes import Axes

# Okabe and Ito's colours, which the colour-blind can tell apart; the marks say the same without colour.
_LOOKS: Final = {"above": ("#009E73", "^"), "below": ("#D55E00", "v"), "no": ("#0072B2", "o"), None: ("#000000", "s")}
_SAID: Final = {"above": "above the start", "below": "below", "no": "not told apart", None: "the start"}
_INCHES: Final = 0.27  # a line


def field_plot(table: pl.DataFrame, title: str) -> bytes:
    """PNG; equal tables give equal bytes.

    Args:
        table: the table `field`.
        title: drawn above.
    """
    ranked = table.filter(dataset=TEXT).sort("mean")["label"].to_list()
    panels = table["dataset"].unique(maintain_order=True).to_list()
    figure = Figure(figsize=(2.2 + 2.4 * len(panels), 1.6 + _INCHES * len(ranked)), dpi=120, layout="constrained")
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for panel, name in zip(axes, panels, strict=True):
        rows = {row["label"]: row for row in table.filter(dataset=name).iter_rows(named=True)}
        _draw(panel, rows, ranked, name)
    axes[0].set_yticks(range(len(ranked)), [label.replace("$", r"\$") for label in ranked], fontsize=8)
    figure.suptitle(title, fontsize=10, parse_math=False)
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    return png(figure)


def _draw(axes: Axes, rows: Mapping[str, Mapping[str, Any]], ranked: Sequence[str], name: str) -> None:
    start = next(iter(rows.values()))  # the first label is the encoder as it is
    axes.axvline(100 * start["mean"], color="#999999", linewidth=0.8, zorder=0)
    for outcome, (colour, mark) in _LOOKS.items():
        members = [(place, rows[label]) for place, label in enumerate(ranked) if rows[label]["verdict"] == outcome]
        if not members:
            continue
        places = [place for place, _ in members]
        lows, highs = ([100 * row[end] for _, row in members] for end in ("ci_low", "ci_high"))
        axes.hlines(places, lows, highs, color=colour, linewidth=1.2)
        means = [100 * row["mean"] for _, row in members]
        axes.plot(means, places, mark, markersize=5, color=colour, label=_SAID[outcome])
    decides = "" if start["decides"] else " (check)"
    axes.set_title(f"{name}{decides}", fontsize=9, parse_math=False)
    axes.set_xlabel(f"{start['metric']} × 100", fontsize=8)
    axes.tick_params(axis="x", labelsize=8)
    axes.grid(visible=True, axis="x", alpha=0.3)
