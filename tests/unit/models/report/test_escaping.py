"""Foreign text on a page: shown as it is, obeyed in nothing."""

import polars as pl
import pytest

from models.report.curve import training_curve
from models.report.escaping import code, plain
from models.report.page import markdown_table, not_scored

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


@pytest.mark.parametrize("attack", ATTACKS, ids=ascii)
def test_what_is_active_is_escaped(attack):
    line = plain(attack)
    assert "\n" not in line
    assert "\x1b" not in line
    for active in ("<", ">", "|", "`", "*", "~", "&", "](", "]:"):
        assert line.count(active) == line.count(active.replace("]", "\\]") if "]" in active else f"\\{active}") or (
            "]" in active and active not in line
        )


@pytest.mark.parametrize("attack", ATTACKS, ids=ascii)
def test_a_cell_stays_a_cell(attack):
    lines = markdown_table([{"sentence": attack, attack: "x"}]).split("\n")
    assert len(lines) == 3
    assert [line.replace("\\|", "").count("|") for line in lines] == [3, 3, 3]


def test_what_is_harmless_is_left_as_it_is():
    for text in ("50.00 [40.0, 60.0]", "sentence_id", "A cat's (small) toy, 100 %!", "stsb/dev: spearman, all", "– é"):
        assert plain(text) == text


def test_code_holds_any_backticks():
    assert code("a") == "`a`"
    assert code("a``b") == "``` a``b ```"


def test_titles_and_reasons_are_escaped():
    assert not_scored({"<b>": "a\nb"}) == ["## Missing\n\nNot scored, and not part of any average:\n\n- \\<b\\>: a b"]


def test_a_title_is_no_formula(tmp_path):
    log = pl.DataFrame(
        {"step": [1], "loss": [1.0], "dev_spearman": [0.5], "uniformity": [0.1], "effective_rank": [2.0]}
    )
    assert training_curve(log, r"costs $\frac{1 and $2").startswith(b"\x89PNG")
