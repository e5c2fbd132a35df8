"""The training curve as a picture."""

from __future__ import annotations

import polars as pl
from matplotlib.figure import Figure

from models.report.png import png

_PANELS = (
    ("loss", "loss"),
    ("dev_spearman", "dev Spearman × 100"),
    ("uniformity", "uniformity (lower spreads more)"),
    ("effective_rank", "effective rank"),
)


def training_curve(log: pl.DataFrame, title: str) -> bytes:
    """PNG of loss, dev Spearman, uniformity and effective rank by step; equal logs give equal bytes.

    Args:
        log: a training log (`step` and the panels' columns); rows without a value leave a panel's line unbroken.
        title: drawn above the panels.
    """
    figure = Figure(figsize=(9, 5), dpi=110, layout="constrained")
    for place, (column, label) in enumerate(_PANELS, start=1):
        axes = figure.add_subplot(2, 2, place)
        points = log.select("step", value=pl.col(column)).drop_nulls()
        scale = 100 if column == "dev_spearman" else 1
        marker = "o" if points.height <= 30 else ""
        axes.plot(
            points["step"].to_numpy(), points["value"].to_numpy() * scale, marker=marker, markersize=3, linewidth=1
        )
        axes.set_title(label, fontsize=9)
        axes.tick_params(labelsize=8)
        axes.grid(visible=True, alpha=0.3)
    figure.suptitle(title, fontsize=11, parse_math=False)
    return png(figure)
