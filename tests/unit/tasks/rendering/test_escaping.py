"""Foreign text on a page is shown literally, and never interpreted."""

import polars as pl

from bsl.tasks.rendering.blocks import Page, Part, Prose
from bsl.tasks.rendering.charts import training_charts
from bsl.tasks.rendering.escaping import code, html_sentence, plain, sentence
from bsl.tasks.rendering.html import html
from bsl.tasks.rendering.markdown import markdown, markdown_table
from bsl.tasks.rendering.score_tables import missing_sets
from tests.every import every

ATTACKS = [
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "[click](javascript:alert(1))",
    "![](http://evil/track.png)",
    "[ref]: http://evil",
    "a | b | c",
    "`code` ``more``",
    "**bold** _so_ ~~gone~~",
    "&lt;b&gt;",
    "line\n# heading\n\n| --- |",
    "\x1b[31mred",
    "right\u202eleft",
    "back\\slash",
]


@every(ATTACKS)
def test_plain_escapes_markup_and_control_characters(attack):
    line = plain(attack)
    assert "\n" not in line
    assert "\x1b" not in line
    for active in ("<", ">", "|", "`", "*", "~", "&", "](", "]:"):
        assert line.count(active) == line.count(active.replace("]", "\\]") if "]" in active else f"\\{active}") or (
            "]" in active and active not in line
        )


@every(ATTACKS)
def test_markdown_table_cell_cannot_break_the_table(attack):
    lines = markdown_table([{"sentence": attack, attack: "x"}]).split("\n")
    assert len(lines) == 3
    assert [line.replace("\\|", "").count("|") for line in lines] == [3, 3, 3]


def test_plain_leaves_harmless_text_unchanged():
    for text in ("50.00 [40.0, 60.0]", "sentence_id", "A cat's (small) toy, 100 %!", "stsb/dev: spearman, all", "– é"):
        assert plain(text) == text


def test_code_delimiter_is_longer_than_backticks_inside():
    assert code("a") == "`a`"
    assert code("a``b") == "``` a``b ```"


def test_backtick_text_is_code_in_markdown_and_html():
    text = "give what `bsl run a|b` <ends> with, or protocol `fast` *alone*"
    assert sentence(text) == "give what `bsl run a|b` \\<ends\\> with, or protocol `fast` \\*alone\\*"
    assert html_sentence(text) == (
        "give what <code>bsl run a|b</code> &lt;ends&gt; with, or protocol <code>fast</code> *alone*"
    )
    for foreign in ("`<b>", "``a`` <b>", "` <b> `` c"):
        assert (sentence(foreign), html_sentence(foreign)) == (plain(foreign), foreign.replace("<b>", "&lt;b&gt;"))
    page = Page(title="t", word="", sentence=text, lead=[], parts=[Part("Errors", [Prose(text)])])
    assert html(page).count("<code>fast</code>") == markdown(page).count("`fast`") == 2


def test_page_title_and_missing_set_reasons_are_escaped():
    page = Page(title="<b>", word="", sentence="a|b", lead=[], parts=[Part("Missing", [missing_sets({"<i>": "a\nb"})])])
    text = markdown(page)
    assert text.startswith("# \\<b\\>\n\na\\|b\n")
    assert "| \\<i\\> | a b |" in text


def test_chart_title_with_dollar_signs_is_not_math():
    log = {"step": [1], "loss": [1.0], "dev_spearman": [0.5], "std": [0.1], "uniformity": [0.1], "alignment": [0.2]}
    charts = training_charts({r"costs $\frac{1 and $2": pl.DataFrame({**log, "effective_rank": [2.0]})})
    assert len(charts) == 5
