"""The page says which to use only as sure as it is, what it costs, and what forgets."""

from dataclasses import replace

import polars as pl

from models.evaluation.significance.paired import Difference
from models.evaluation.sweep import Ranking
from storage.artifacts.schemas import COSTS, SWEEP
from tasks.rendering.blocks import Part, Prose
from tasks.rendering.html import html
from tasks.rendering.markdown import markdown
from tasks.reporting.sweep.advice import TEXT, Choice, advice, cost_rows
from tasks.reporting.sweep.page import SweepContent, sweep_chart, sweep_page
from tasks.reporting.sweep.system import SweepSystem


def row(label, mean, gap=None, p=None, verdict=None, dataset=TEXT):
    figures = {"mean": mean, "ci_low": mean - 0.02, "ci_high": mean + 0.02, "seeds": 1, "p_value": p}
    gaps = {} if gap is None else {"difference": gap, "difference_low": gap - 0.01, "difference_high": gap + 0.01}
    reference = {"reference": "as it is"}
    place = {"dataset": dataset, "metric": "mean", "protocol": "all", "decides": dataset == TEXT}
    return {"label": label, "verdict": verdict, **reference, **place, **figures, **gaps}


def standing(label, gap, p):
    return {label: Difference(gap, gap - 0.01, gap + 0.01, p)}


def ranked(best, behind):
    return Ranking(best, behind, {})


COSTS = pl.DataFrame(
    [
        {"label": "as it is"},
        {"label": "BSL", "steps": 80, "seconds": 21.3, "translation_seconds": 60.0, "checkpoint": "c"},
        {"label": "SimCSE", "steps": 90, "seconds": 20.0, "checkpoint": "d"},
        {"label": "VICReg"},
    ],
    schema=COSTS,
)


OWN = [Part("Your text", [Prose("a <b> c")]), Part("Reproduce", [Prose("bsl field r.csv")], html_only=True)]


def content(rows, ranking, forgets=None):
    systems = [SweepSystem(label=label) for label in COSTS["label"]]
    choice = Choice(replace(ranking, forgets=forgets or {}), COSTS, "/store")
    faults = {"VICReg": "loss is nan at step 3"}
    table = pl.DataFrame(rows, schema=SWEEP)
    return SweepContent("Reviews, from bert", table, systems, "recipe", TEXT, faults, ("noted",), choice)


def summary_of(content):
    return advice(content.table, content.choice)


def page_of(content):
    return sweep_page(content, summary_of(content), OWN)


ROWS = [row("as it is", 0.40), row("BSL", 0.45, 0.05, 0.001, "above"), row("SimCSE", 0.44, 0.04, 0.002, "above")]
RANKED = ranked("BSL", standing("as it is", 0.05, 0.001) | standing("SimCSE", 0.005, 0.4))


def test_advice_names_the_best_system_with_significance_and_cost():
    said = summary_of(content(ROWS, RANKED))
    assert said == [
        "Use BSL: 45.00 compared with 40.00, +5.00 [+4.00, +6.00], p 0.001 on your text.",
        "It has no significant difference from SimCSE (-0.5); it is significantly above the other 1.",
        "It took 21 s of training (80 steps), and 60 s of translation. The encoder (opens with SentenceTransformer): "
        "/store/checkpoint/c/encoder",
    ]


def test_advice_omits_lower_systems_without_significant_wins():
    rows = [row("as it is", 0.40), row("BSL", 0.45, 0.05, 0.001, "above")]
    said = summary_of(content(rows, ranked("BSL", standing("as it is", 0.05, 0.4))))
    assert said[1] == "It has no significant difference from as it is (-5.0)."


def test_advice_keeps_the_original_without_a_significant_gain():
    rows = [row("as it is", 0.40), row("BSL", 0.405, 0.005, 0.3, "no")]
    (said,) = summary_of(content(rows, ranked("BSL", standing("as it is", 0.005, 0.3))))
    assert said.startswith(
        "Keep the original encoder: no method is significantly above it on your text (highest: BSL, 40.50"
    )


def test_advice_keeps_the_original_when_it_scores_highest():
    rows = [row("as it is", 0.40), row("BSL", 0.35, -0.05, 0.001, "below")]
    (said,) = summary_of(content(rows, ranked("as it is", standing("BSL", 0.05, 0.001))))
    assert said == "Keep the original encoder: no eligible method is higher than its 40.00."


def test_advice_names_but_never_chooses_a_forgetting_system():
    rows = [*ROWS, row("TF-IDF", 0.50, 0.10, 0.001, "above")]
    ranking = ranked("BSL", {**RANKED.behind, **standing("TF-IDF", -0.05, 0.001)})
    said = summary_of(content(rows, ranking, {"TF-IDF": -0.181}))
    assert said[0].startswith("Use BSL")
    assert said[-1] == (
        "TF-IDF is higher on your text (50.00), but its figure on the check drops by 18.1: use it for this text only."
    )


def test_advice_prefers_significant_gain_over_higher_uncertain_score():
    rows = [*ROWS, row("flow", 0.46, 0.06, 0.2, "no")]
    forgets = {"SimCSE": -0.02}
    said = summary_of(content(rows, ranked("BSL", {**RANKED.behind, **standing("flow", -0.01, 0.6)}), forgets))
    assert said[0].startswith("Use BSL")
    assert "no significant difference from SimCSE (-0.5), flow (+1.0)" in said[1]
    assert said[-1] == (
        "flow is higher on your text (46.00), but not significantly above the original encoder: "
        "+6.00 [+5.00, +7.00], p 0.200."
    )


def test_advice_keeps_the_original_without_other_scores():
    (said,) = summary_of(content(ROWS[:1], ranked("as it is", {})))
    assert said.startswith("Keep the original encoder: no other method has figures (3 were not available or failed)")


def test_cost_table_has_a_row_for_failed_methods():
    rows = cost_rows(content(ROWS, RANKED, {"SimCSE": -0.02}).choice)
    assert [found["system"] for found in rows] == ["as it is", "BSL", "SimCSE", "VICReg"]
    assert rows[2]["check"] == "forgets (-2.0)"
    assert [found["steps"] for found in rows] == ["", "80", "90", ""]


def test_sweep_page_contains_advice_tables_errors_and_notes():
    crops = [row(r["label"], 0.5, dataset="crop") for r in ROWS]
    page = html(page_of(content([*ROWS, *crops], RANKED)))
    for part in (
        "Reviews, from bert",
        "Use BSL",
        "loss is nan",
        "noted",
        "One seed",
        "crop (mean, all), compared with",
    ):
        assert part in page


def test_markdown_page_escapes_the_title():
    page = markdown(page_of(replace(content([row("as it is", 0.4)], ranked("as it is", {})), title="<b>|x|</b>")))
    assert r"# \<b\>\|x\|\</b\>" in page


def test_equal_tables_render_equal_charts():
    found = content([*ROWS, *(row(r["label"], 0.3, dataset="crop") for r in ROWS)], RANKED)
    assert sweep_chart(found) == sweep_chart(found)


def test_html_page_contains_verdict_chart_errors_and_own_text():
    page = html(page_of(content(ROWS, RANKED)))
    assert '<p class="verdict">Use BSL: 45.00 compared with 40.00' in page
    assert "× 100, with 95 % interval. BSL: 45.0; SimCSE: 44.0; as it is: 40.0" in page
    assert "/store/checkpoint/c/encoder" in page
    assert "loss is nan at step 3" in page.split('id="errors"')[1]
    assert "a &lt;b&gt; c" in page
    assert "bsl field r.csv" in page
