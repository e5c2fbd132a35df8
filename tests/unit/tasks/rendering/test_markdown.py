"""Markdown pages have the verdict first, all blocks, and charts as files; curves of a training are folded."""

import polars as pl
import pytest

from bsl.storage.artifacts.schemas import TRAINING_LOG
from bsl.tasks.rendering.blocks import Charts, Code, Facts, Folded, Page, Part, Prose, Row, Table
from bsl.tasks.rendering.charts import Mark, score_chart
from bsl.tasks.rendering.markdown import markdown
from bsl.tasks.rendering.training_curves import folded_curves
from tests.every import every

CHART = score_chart([Mark("x", "before", 50.0)], "on a set")


def page_of(*blocks, lead=(), html_only=False):
    parts = [Part("Part", blocks, html_only=html_only)]
    return Page(title="A <page>", word="BETTER", sentence="than a|b.", lead=lead, parts=parts)


def test_page_starts_with_the_verdict_and_renders_every_block():
    blocks = [
        (Table("Rows", ["a"], [Row(["1.00 [0.50, 1.50]"])]), "Rows:\n\n| a |\n| --- |\n| 1.00 [0.50, 1.50] |"),
        (Table("None here", [], []), "None here: none."),
        (Prose("Under", under=True), "### Under"),
        (Facts({"name": "value|"}), "| name | value\\| |"),
        (Code("a\n```\nb"), "````\na\n```\nb\n````"),
        (Code("a``b"), "``` a``b ```"),
        (Folded("More", [Prose("inside")]), "### More\n\ninside"),
    ]
    page = page_of(*(block for block, _ in blocks), lead=[Charts([CHART], lead=True)])
    text = markdown(page)
    assert text.startswith("# A \\<page\\>\n\n**BETTER** than a\\|b.\n\n![on a set. x: 50.0](scores.svg)\n\n## Part\n")
    assert [shown for _, shown in blocks if shown not in text] == []
    assert "![" not in markdown(page, pictures=False)


def test_html_only_part_has_no_markdown_or_files():
    assert "Part" not in markdown(page_of(Charts([CHART]), html_only=True))
    assert page_of(Charts([CHART]), html_only=True).chart_files == []
    assert page_of(Charts([CHART])).chart_files == [CHART]


def test_part_of_charts_alone_is_no_heading_in_the_ui():
    page = page_of(Charts([CHART]))
    assert ("## Part" in markdown(page), "## Part" in markdown(page, pictures=False)) == (True, False)


def log_of(**ends):
    count = max(map(len, ends.values()), default=2)
    missing = {name: [None] * count for name in TRAINING_LOG}
    return pl.DataFrame(missing | {"step": range(count)} | ends, schema=TRAINING_LOG)


@every(
    [
        ({"loss": (0.2, 0.1)}, "loss 0.2 → 0.1 (good)"),
        ({"loss": (0.1, 0.2)}, "loss 0.1 → 0.2 (worse)"),
        ({"loss": (0.4, 0.2, 0.2, 0.0)}, "loss 0.3 → 0.1 (good)"),
        ({"dev_spearman": (0.7, 0.6, 0.7, 0.8)}, "dev Spearman 0.7 → 0.8 (good)"),
        ({"effective_rank": (160.0, 158.0)}, "effective rank 160 → 158 (good)"),
        ({"effective_rank": (160.0, 100.0)}, "effective rank 160 → 100 (fair)"),
        ({"std": (0.86, 0.1)}, "spread of vectors 0.86 → 0.1 (bad)"),
        (
            {"alignment": (1.1, 0.8), "uniformity": (-2.9, -2.4)},
            "alignment of pairs 1.1 → 0.8 (good), uniformity -2.9 → -2.4 (worse)",
        ),
    ]
)
def test_line_of_curves_has_first_and_last_value_and_a_word(ends, line):
    (folded,) = folded_curves(log_of(**ends))
    assert folded.summary == f"Curves: {line}"
    assert folded_curves(log_of()) == []


@pytest.mark.parametrize("pictures", [True, False])
def test_folded_charts_are_files_of_the_page_and_not_in_the_ui(pictures):
    page = page_of(*folded_curves(log_of(loss=(0.2, 0.1))))
    (chart,) = page.chart_files
    text = markdown(page, pictures=pictures)
    assert (f"]({chart.file})" in text) is pictures
    assert "### Curves: loss" in text
