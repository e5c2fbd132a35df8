"""HTML pages are well-formed and themed; foreign text is text; tests/differential/test_pages.py draws such texts."""

import re
from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from bsl.tasks.rendering.blocks import (
    Block,
    Charts,
    Page,
    Part,
    Prose,
    Row,
    Table,
    split_interval,
)
from bsl.tasks.rendering.charts import Mark, score_chart, training_charts
from bsl.tasks.rendering.escaping import html_sentence, plain, sentence
from bsl.tasks.rendering.html import html
from bsl.tasks.rendering.markdown import markdown
from tests.every import every
from tests.outline import Outline

HOSTILE = '<script>alert("1")</script>&amp;\u202e{{ 7 * 7 }}'  # of a chart
LOG = pl.DataFrame(
    {
        "step": [0, 1, 2],
        "loss": [None, 0.5, 0.4],
        "dev_spearman": [0.5, None, 0.6],
        "std": [0.5, None, 0.6],
        "effective_rank": [9.0, None, 8.0],
        "uniformity": [-1.0, None, -2.0],
        "alignment": [0.1, None, 0.2],
    }
)


def page_with(*blocks):
    return html(Page(title="t", word="WORSE", sentence="s", lead=[], parts=[Part("Where & why", blocks)]))


def test_charts_use_page_colours_and_unique_ids_and_their_texts_are_text():
    drawn = [
        score_chart([Mark(HOSTILE, "before", 50.0, 45.0, 55.0), Mark("x", "published", 60.0)], "ρ on a set"),
        *training_charts({r"costs $\frac{1 and $2": LOG, "second": LOG}),  # no formula
    ]
    text = page_with(Charts(drawn), Charts(drawn[:0]))
    outline = Outline(text)
    assert outline.faults == []
    assert outline.tags.count("svg") == 1 + 5
    assert "script" not in outline.tags
    assert not set(re.findall(r"#[01]10[0-9]{3}\b", text))
    assert "var(--after)" in text
    assert "http" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", text)
    alone = drawn[0].standalone()
    assert alone.startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    assert "prefers-color-scheme: dark" in alone
    assert "<script" not in alone


def test_paper_has_dark_ink_and_everything_that_is_folded_or_scrolled_on_a_screen():
    text = page_with(Prose("x"))
    dark = re.findall(r"@media ([^{]*)\{[^}]*--ink: #e", text)
    assert [media.strip() for media in dark] == ["screen and (prefers-color-scheme: dark)"]
    printed = text.partition("@media print {")[2].partition("\n}")[0]
    assert "details::details-content { content-visibility: visible" in printed
    assert ".scroll { overflow: visible" in printed
    assert "pre { white-space: pre-wrap" in printed
    # Eight figures with intervals leave room for a name; it was printed with two letters per line, a row per sheet.
    assert "tbody th.text { min-width: 6rem" in printed
    assert ".num small { white-space: normal" in printed


def test_training_charts_are_deterministic_and_show_measured_quantities_at_whole_steps():
    assert training_charts({"one": LOG}) == training_charts({"one": LOG})
    *curves, plane = training_charts({"one": LOG, "two": LOG})
    assert all(">0.5</text>" not in curve.svg.partition("step</text>")[0] for curve in curves[1:])
    assert (plane.svg.count(">step 0</text>"), plane.svg.count(">step 2</text>")) == (1, 1)
    bare = LOG.with_columns(pl.lit(None, dtype=pl.Float64).alias(name) for name in LOG.columns[2:])
    (loss,) = training_charts({"one": bare})
    assert 'aria-label="Loss by step of training"' in loss.svg


@every(
    [
        ("+2.70 [+1.57, +3.98], p 0.002", "+2.70", "+1.57 to +3.98, p 0.002", True),
        ("45.00 ± 0.20 [44.0, 46.0]", "45.00 ± 0.20", "44.0 to 46.0", True),
        ("55.88 ± 0.84", "55.88 ± 0.84", "", True),
        ("–", "–", "", True),
        ("14,908", "14,908", "", True),
        ("see [a, b]", "see [a, b]", "", False),
        ("a", "a", "", False),
    ]
)
def test_interval_is_split_from_its_value_and_columns_of_numbers_are_detected(text, value, spread, is_number):
    table = Table("t", ["n", "v"], [Row(["a", text]), Row(["b", "–"])])
    assert split_interval(text) == (value, spread)
    assert table.is_number(1) == is_number
    assert f">{value}<small>{spread}</small>" in page_with(table) or not spread


def test_table_of_values_rounds_them():
    (row,) = Table.of("t", [{str(n): value for n, value in enumerate((0.5862006, 14908, None, True, "a"))}]).rows
    assert row.cells == ["0.5862", "14,908", "–", "yes", "a"]


def test_tables_with_equal_titles_are_groups_not_landmarks_and_empty_parts_are_omitted():
    """axe-core's `landmark-unique`: a labelled section is a landmark, a labelled group is not."""
    made = Table.of("Figures × 100", [{"system": "a", "mean": "1.0"}])
    page = html(Page("Sweep", "", "", [], [Part("One", [made]), Part("Two", [made]), Part("Empty")]))
    assert page.count('role="group" aria-label="Figures × 100"') == 2
    assert page.count("<section") == page.count("<section aria-labelledby") == 2
    assert "Empty" not in page
    assert '<h2 id="where-why">' in page_with(made)
    assert 'href="#where-why"' in page_with(made)


def test_backtick_text_is_code_in_markdown_and_html():
    text = "give what `bsl run a|b` <ends> with, or protocol `fast` *alone*"
    assert sentence(text) == "give what `bsl run a|b` \\<ends\\> with, or protocol `fast` \\*alone\\*"
    assert html_sentence(text) == (
        "give what <code>bsl run a|b</code> &lt;ends&gt; with, or protocol <code>fast</code> *alone*"
    )
    for foreign in ("`<b>", "``a`` <b>", "` <b> `` c"):
        assert (sentence(foreign), html_sentence(foreign)) == (plain(foreign), foreign.replace("<b>", "&lt;b&gt;"))


def test_plain_leaves_harmless_text_unchanged():
    for text in ("50.00 [40.0, 60.0]", "sentence_id", "A cat's (small) toy, 100 %!", "stsb/dev: spearman, all", "– é"):
        assert plain(text) == text


@dataclass(frozen=True)
class Toy:
    """A block without a table or a template file."""

    template: ClassVar[str] = "<p>{{ block.word }}!</p>{{ show(block.inner) }}"
    word: str
    inner: Block

    def markdown(self):
        yield f"**{self.word}**"
        yield from self.inner.markdown()


def test_custom_block_class_renders_in_html_and_markdown():
    page = Page("t", "", "", [], [Part("Toys", [Toy("<b>", Prose("inside"))])])
    assert "<p>&lt;b&gt;!</p><p>inside</p>" in html(page)
    assert markdown(page).endswith("## Toys\n\n**<b>**\n\ninside\n")
