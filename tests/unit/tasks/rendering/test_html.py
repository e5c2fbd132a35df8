"""HTML pages are well-formed, themed, and escape any text they show."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import ClassVar

import numpy as np
import polars as pl

from bsl.tasks.rendering.blocks import (
    Block,
    Charts,
    Code,
    Facts,
    Folded,
    Lineage,
    Page,
    Part,
    Prose,
    Row,
    Station,
    Table,
    split_interval,
)
from bsl.tasks.rendering.charts import Mark, cosine_charts, score_chart, training_charts
from bsl.tasks.rendering.html import html
from bsl.tasks.rendering.markdown import markdown
from bsl.tasks.rendering.numbers import shown

HOSTILE = '<script>alert("1")</script>&amp;\u202e{{ 7 * 7 }}'
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
VOID = {"meta", "br", "hr", "link", "img", "input"}


class Outline(HTMLParser):
    """Collects open elements, ids and references of a page; `handle_endtag` notes tags closed in the wrong order."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.uses, self.crossed, self.tags = [], [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        given = dict(attrs)
        self.ids += [given["id"]] if "id" in given else []
        self.uses += [given["href"]] if "href" in given else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        if self.open.pop() != tag:
            self.crossed.append(tag)


def outline_of(text):
    outline = Outline()
    outline.feed(text)
    return outline


def page_with(*blocks):
    return html(Page(title=HOSTILE, word="WORSE", sentence=HOSTILE, lead=[], parts=[Part("Where & why", blocks)]))


def test_every_block_is_well_formed_and_escapes_hostile_text():
    table = Table.of(HOSTILE, [{HOSTILE: HOSTILE, "n": 1234.5678}])
    blocks = [
        table,
        Prose(HOSTILE),
        Prose(HOSTILE, under=True),
        Facts({HOSTILE: HOSTILE}),
        Code(HOSTILE),
        Lineage([[Station(HOSTILE, [HOSTILE], made=True)]]),
        Table("empty", [], []),
    ]
    text = page_with(*blocks, Folded(HOSTILE, blocks))
    outline = outline_of(text)
    assert "script" not in outline.tags
    assert "\u202e" not in text
    assert "{{ 7 * 7 }}" in text
    assert (outline.open, outline.crossed) == ([], [])
    assert '<h2 id="where-why">' in text
    assert "#where-why" in outline.uses


def test_charts_use_page_colours_and_unique_ids():
    gold, rng = np.linspace(0, 5, 60), np.random.default_rng(0)
    drawn = [
        score_chart([Mark(HOSTILE, "before", 50.0, 45.0, 55.0), Mark("x", "published", 60.0)], "ρ on a set"),
        *training_charts({"first": LOG, "second": LOG}),
        *cosine_charts("0", gold, {"before": rng.random(60), "after": rng.random(60)}),
        *cosine_charts("1", gold, {"alone": rng.random(60)}),
    ]
    text = page_with(Charts(drawn), Charts(drawn[:0]))
    outline = outline_of(text)
    assert outline.tags.count("svg") == 1 + 5 + 3 + 2
    assert len(outline.ids) == len(set(outline.ids))
    assert {use[1:] for use in outline.uses if use.startswith("#")} <= set(outline.ids)
    assert not set(re.findall(r"#[01]10[0-9]{3}\b", text))
    assert "var(--after)" in text
    assert (outline.open, outline.crossed) == ([], [])
    assert "script" not in outline.tags
    assert "http" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", text)


def test_training_charts_are_deterministic():
    assert training_charts({"one": LOG}) == training_charts({"one": LOG})


def test_unmeasured_quantity_has_no_chart():
    bare = LOG.with_columns(pl.lit(None, dtype=pl.Float64).alias(name) for name in LOG.columns[2:])
    (loss,) = training_charts({"one": bare})
    assert 'aria-label="Loss by step of training"' in loss.svg


def test_columns_of_numbers_are_detected():
    table = Table("t", ["name", "n"], [Row(["a", "45.00 [44.0, 46.0]"]), Row(["b", "–"])])
    assert [table.is_number(column) for column in (0, 1)] == [False, True]


def test_shown_rounds_and_formats_values():
    assert [shown(value) for value in (0.5862006127283527, 14908, None, True, "a")] == [
        "0.5862",
        "14,908",
        "–",
        "yes",
        "a",
    ]


def test_interval_is_split_from_its_value_and_printed_small():
    assert split_interval("+2.70 [+1.57, +3.98], p 0.002") == ("+2.70", "+1.57 to +3.98, p 0.002")
    assert split_interval("45.00 ± 0.20 [44.0, 46.0]") == ("45.00 ± 0.20", "44.0 to 46.0")
    assert split_interval("see [a, b]") == ("see [a, b]", "")
    assert "<small>44.0 to 46.0</small>" in page_with(Table("t", ["n", "v"], [Row(["a", "45.00 [44.0, 46.0]"])]))


def test_part_without_blocks_is_omitted():
    page = Page(title="t", word="", sentence="", lead=[], parts=[Part("Empty"), Part("Full", [Prose("x")])])
    assert "Empty" not in html(page)
    assert "Full" in html(page)


def test_standalone_chart_has_both_colour_schemes_and_escapes_text():
    text = score_chart([Mark(HOSTILE, "before", 50.0)], "on a set").standalone()
    assert text.startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    assert "prefers-color-scheme: dark" in text
    assert "<script" not in text


def test_tables_with_equal_titles_are_groups_not_landmarks():
    """axe-core's `landmark-unique`: a labelled section is a landmark, a labelled group is not."""
    made = Table.of("Figures × 100", [{"system": "a", "mean": "1.0"}])
    page = html(Page("Sweep", "", "", [], [Part("One", [made]), Part("Two", [made])]))
    assert page.count('role="group" aria-label="Figures × 100"') == 2
    assert page.count("<section") == page.count("<section aria-labelledby") == 2


def test_mean_with_standard_deviation_counts_as_a_number():
    made = Table.of("Figures", [{"system": "a", "mean ± sd": "55.88 ± 0.84"}, {"system": "b", "mean ± sd": "–"}])
    assert [made.is_number(column) for column in (0, 1)] == [False, True]


def test_chart_step_ticks_are_integers_without_repeated_labels():
    *curves, plane = training_charts({"one": LOG, "two": LOG})
    assert all(">0.5</text>" not in curve.svg.partition("step</text>")[0] for curve in curves[1:])
    assert (plane.svg.count(">step 0</text>"), plane.svg.count(">step 2</text>")) == (1, 1)


@dataclass(frozen=True)
class Toy:
    """A block without a table or a template file."""

    template: ClassVar[str] = "<p>{{ block.word }}!</p>{{ show(block.inner) }}"
    word: str
    inner: Block

    def markdown(self) -> Iterator[str]:
        yield f"**{self.word}**"
        yield from self.inner.markdown()


def test_custom_block_class_renders_in_html_and_markdown():
    page = Page("t", "", "", [], [Part("Toys", [Toy("<b>", Prose("inside"))])])
    assert "<p>&lt;b&gt;!</p><p>inside</p>" in html(page)
    assert markdown(page).endswith("## Toys\n\n**<b>**\n\ninside\n")
