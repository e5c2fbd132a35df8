"""Curves of a training are folded under a line with words whether they are good."""

from __future__ import annotations

import polars as pl
import pytest

from bsl.storage.artifacts.schemas import TRAINING_LOG
from bsl.tasks.rendering.blocks import Charts, Page, Part
from bsl.tasks.rendering.html import html
from bsl.tasks.rendering.markdown import markdown
from bsl.tasks.rendering.training_curves import folded_curves
from tests.every import every


def _log(**ends: tuple[float, float]) -> pl.DataFrame:
    rows = {"step": [0, 10], **{name: list(both) for name, both in ends.items()}}
    return pl.DataFrame(rows | {name: [None, None] for name in TRAINING_LOG if name not in rows}, schema=TRAINING_LOG)


@every(
    [
        ({"loss": (0.2, 0.1)}, "loss 0.2 → 0.1 (good)"),
        ({"loss": (0.1, 0.2)}, "loss 0.1 → 0.2 (worse)"),
        ({"dev_spearman": (0.7, 0.8)}, "dev Spearman 0.7 → 0.8 (good)"),
        ({"effective_rank": (160.0, 158.0)}, "effective rank 160 → 158 (good)"),
        ({"effective_rank": (160.0, 100.0)}, "effective rank 160 → 100 (fair)"),
        ({"std": (0.86, 0.1)}, "spread of vectors 0.86 → 0.1 (bad)"),
        (
            {"alignment": (1.1, 0.8), "uniformity": (-2.9, -2.4)},
            "alignment of pairs 1.1 → 0.8 (good), uniformity -2.9 → -2.4 (worse)",
        ),
    ]
)
def test_line_has_first_and_last_value_and_a_word(ends: dict[str, tuple[float, float]], line: str) -> None:
    (folded,) = folded_curves(_log(**ends))
    assert folded.summary == f"Curves: {line}"


def test_log_without_quantities_has_no_curves() -> None:
    assert folded_curves(_log()) == []


@pytest.mark.parametrize("pictures", [True, False])
def test_folded_charts_are_files_of_the_page_and_not_in_the_ui(pictures: bool) -> None:
    blocks = folded_curves(_log(loss=(0.2, 0.1)))
    page = Page("Title", "", "", [], [Part("Training", blocks)])
    (chart,) = page.chart_files
    assert (f"]({chart.file})" in markdown(page, pictures=pictures)) is pictures
    assert "### Curves: loss" in markdown(page, pictures=pictures)
    assert "<details>\n<summary>Curves: loss" in html(page)
    assert any(isinstance(block, Charts) for block in blocks[0].blocks)
