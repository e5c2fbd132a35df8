"""The advice is only as sure as the figures, and never a system that forgets."""

from dataclasses import replace

import polars as pl
import pytest

from bsl.models.evaluation.sweep import Choice
from bsl.storage.artifacts.schemas import SWEEP
from bsl.tasks.figures import SweepFigures
from bsl.tasks.rendering.blocks import Part, Prose
from bsl.tasks.rendering.html import html
from bsl.tasks.rendering.markdown import markdown
from bsl.tasks.reporting.sweep.compare import advice, forgetting_notes
from bsl.tasks.reporting.sweep.page import SweepContent, sweep_chart, sweep_page
from bsl.tasks.reporting.sweep.system import SweepSystem

TEXT = "your text neighbour"


def row(label, mean, gap=None, p=None, verdict=None, dataset=TEXT):
    ends = (None, None) if mean is None else (mean - 0.02, mean + 0.02)
    figures = {"mean": mean, "ci_low": ends[0], "ci_high": ends[1], "seeds": 1, "p_value": p, "verdict": verdict}
    gaps = {} if gap is None else {"difference": gap, "difference_low": gap - 0.01, "difference_high": gap + 0.01}
    place = {"dataset": dataset, "metric": "mrr", "protocol": "all", "reference": "original encoder"}
    return {"label": label, **place, **figures, **gaps, "decides": dataset == TEXT}


START = row("original encoder", 0.40)
BSL = row("BSL", 0.45, 0.05, 0.001, "above")
FAILED = row("TSDAE", None)


@pytest.mark.parametrize(
    ("rows", "best", "sentence"),
    [
        (
            [START, BSL, FAILED], "BSL",
            "Use BSL: 45.00 compared with 40.00, +5.00 [+4.00, +6.00], p 0.001 on your text.",
        ),
        (
            [START, row("BSL", 0.405, 0.005, 0.3, "no")], "BSL",
            "Keep the original encoder: no point is significantly above it on your text (highest: BSL, 40.50 compared "
            "with 40.00, +0.50 [-0.50, +1.50], p 0.300).",
        ),
        (
            [START, row("BSL", 0.35, -0.05, 0.001, "below")], "original encoder",
            "Keep the original encoder: no point that may be chosen is higher than its 40.00 on your text.",
        ),
        ([START, FAILED], "original encoder", "Keep the original encoder: no other point has figures."),
    ],
)  # fmt: skip
def test_advice_is_one_sentence_as_sure_as_the_figures(rows, best, sentence):
    assert advice(pl.DataFrame(rows, schema=SWEEP), Choice(best, {}), "your text") == sentence


def test_forgetting_points_are_named_with_their_loss():
    (note,) = forgetting_notes(Choice("BSL", {"SimCSE": -0.181}), 0.005)
    assert note.startswith("SimCSE loses 18.1 points on a general set, more than the allowed 0.5")


OWN = [Part("Your text", [Prose("a <b> c")]), Part("Reproduce", [Prose("bsl sweep own")], html_only=True)]
CONTENT = SweepContent(
    "Reviews, from bert",
    pl.DataFrame([START, BSL, FAILED, *(row(r["label"], 0.5, dataset="crop") for r in (START, BSL))], schema=SWEEP),
    [SweepSystem(label=label) for label in ("original encoder", "BSL", "TSDAE")],
    "recipe",
    SweepFigures(shown=TEXT, faults={"TSDAE": "loss is nan at step 3"}, notes=["noted"]),
)


def test_html_page_contains_verdict_chart_errors_notes_and_own_text():
    page = html(sweep_page(CONTENT, ["Use BSL: 45.00"], OWN))
    assert '<p class="verdict">Use BSL: 45.00' in page
    assert "× 100, with 95 % interval. BSL: 45.0; original encoder: 40.0" in page
    assert "loss is nan at step 3" in page.split('id="errors"')[1]
    assert "a &lt;b&gt; c" in page
    assert "bsl sweep own" in page
    assert all(part in page for part in ("Reviews, from bert", "noted", "One seed"))


def test_markdown_page_escapes_the_title():
    page = markdown(sweep_page(replace(CONTENT, title="<b>|x|</b>"), [], OWN))
    assert r"# \<b\>\|x\|\</b\>" in page


def test_equal_tables_render_equal_charts():
    assert sweep_chart(CONTENT) == sweep_chart(CONTENT)
