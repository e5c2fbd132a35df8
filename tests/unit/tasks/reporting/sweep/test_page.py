"""A study for people: told apart only where interval and p agree, one column a set, a picture of equal bytes."""

import polars as pl
import pytest

from bsl.models.evaluation.significance.paired import Difference
from bsl.models.evaluation.sweep import MEAN
from bsl.storage.artifacts.schemas import SWEEP
from bsl.tasks.figures import SweepFigures
from bsl.tasks.rendering.markdown import markdown
from bsl.tasks.reporting.sweep.page import (
    SweepContent,
    comparisons,
    finding,
    set_rows,
    shown_set,
    sweep_chart,
    sweep_page,
)
from bsl.tasks.reporting.sweep.system import SweepSystem


def row(label: str, dataset: str, mean: float, gain: tuple[float, float, float, float] | None = None, **other: object):
    figure = {"metric": "spearman", "protocol": "all", "sd": 0.01, "ci_low": mean - 0.02, "ci_high": mean + 0.02}
    names = ("difference", "difference_low", "difference_high", "p_value")
    differences = dict(zip(names, gain or (None,) * 4, strict=True))
    place = {"label": label, "dataset": dataset, "mean": mean, "seeds": 3, "reference": "a", "decides": True}
    return place | figure | differences | {"verdict": gain and Difference(*gain).verdict} | other


@pytest.fixture
def table():
    rows = [
        row(label, dataset, mean, gain)
        for dataset in ("stsb dev", "stsb test", MEAN)
        for label, mean, gain in (
            ("a", 0.50, None),
            ("b", 0.60, (0.10, 0.05, 0.15, 0.010)),
            ("c", 0.53, (0.03, 0.01, 0.05, 0.300)),
            ("d", 0.40, (-0.10, -0.15, -0.05, 0.010)),
        )
    ]
    accuracy = {"metric": "accuracy", "protocol": "fast", "sd": None, "ci_low": None, "ci_high": None}
    return pl.DataFrame([*rows, row("a", "mr all", 0.7, reference=None, decides=None, **accuracy)], schema=SWEEP)


POINTS = [
    SweepSystem(label=label, line="", place=label, published=figure)
    for label, figure in (("a", 52.5), ("b", None), ("c", 61.0), ("d", None))
]


def content(table, systems=POINTS, axis="recipe", shown=MEAN, faults=None, notes=()):
    figures = SweepFigures(shown=shown, faults=faults or {}, notes=list(notes))
    return SweepContent("Systems", table, systems, axis, figures)


def page_of(content):
    return markdown(sweep_page(content, [finding(content.table, content.figures.shown)], []))


def test_significance_requires_both_interval_and_corrected_p_value(table):
    ((heading, rows),) = comparisons(table, MEAN)
    assert heading == "mean of sets (spearman, all), compared with a"
    assert [line["significant"] for line in rows] == ["", "above", "no", "below"]


def test_own_text_and_scored_pairs_have_separate_comparisons(table):
    question = {"metric": "mean reciprocal rank"}
    own = [
        row("a", "own:t title", 0.2, **question),
        row("b", "own:t title", 0.1, (-0.1, -0.2, -0.05, 0.01), **question),
    ]
    both = pl.concat([table.filter(pl.col("dataset") == "stsb test"), pl.DataFrame(own, schema=SWEEP)])
    headings = [heading for heading, _ in comparisons(both, "stsb test")]
    assert headings == [
        "stsb test (spearman, all), compared with a",
        "own:t title (mean reciprocal rank, all), compared with a",
    ]
    assert "above a: b" in finding(both, "stsb test")
    assert "On own:t title, below a: b (-10.00 [-20.00, -5.00])." in finding(both, "stsb test")


def test_set_table_shows_a_dash_for_missing_scores(table):
    first, second, *_ = set_rows(table)
    assert list(first) == ["system", "stsb dev", "stsb test", MEAN, "mr all, accuracy"]
    assert (first["mr all, accuracy"], second["mr all, accuracy"], second[MEAN]) == ("70.00", "–", "60.00 ± 1.00")


def test_shown_set_defaults_to_the_mean_of_sets(table):
    assert shown_set(table, None) == MEAN
    assert shown_set(table, "stsb") == "stsb test"
    assert shown_set(table, "sts12") == MEAN
    selected = pl.DataFrame([row("a", "sickr test", 0.5, decides=False)], schema=SWEEP)
    assert shown_set(pl.concat([table.filter(dataset="stsb test"), selected]), None) == "stsb test"
    assert shown_set(table.filter(dataset="mr all"), None) == "mr all"


def test_uncompared_set_has_table_and_chart_of_headline_metric():
    """Argument facets have two correlations of one set, precisions and V-measures one figure each."""
    alone = {"reference": None, "protocol": "unsupervised"}
    rows = [
        row(label, "afs test", mean, metric=metric, **alone)
        for label, mean in (("a", 0.3), ("b", 0.4))
        for metric in ("pearson", "spearman")
    ]
    afs = pl.DataFrame(rows, schema=SWEEP)
    assert shown_set(afs, None) == "afs test"
    ((heading, lines),) = comparisons(afs, "afs test")
    assert heading == "afs test (spearman, unsupervised)"
    assert [(line["system"], line["mean ± sd"]) for line in lines] == [("a", "30.00 ± 1.00"), ("b", "40.00 ± 1.00")]
    assert list(set_rows(afs)[0]) == ["system", "afs test, pearson", "afs test"]
    chart = sweep_chart(content(afs, POINTS[:2], "recipe", "afs test"))
    assert chart is not None
    assert "b: 40.0; a: 30.0; a (published): 52.5" in chart.label


def test_shown_set_prefers_another_set_over_the_dev_set():
    own = {"metric": "average precision", "protocol": "ranked", "reference": None}
    rows = [row("a", "stsb dev", 0.7), row("a", "toy test", 0.5, **own)]
    assert shown_set(pl.DataFrame(rows, schema=SWEEP), None) == "toy test"


def test_system_without_score_has_empty_row_and_error(table):
    nothing = {"label": "e", "dataset": MEAN, "metric": "spearman", "protocol": "all", "seeds": 0, "reference": "a"}
    more = pl.concat([table, pl.DataFrame([nothing], schema=SWEEP)])
    ((_, (*_, last)),) = comparisons(more, MEAN)
    assert (last["system"], last["mean ± sd"], last["seeds"], last["significant"]) == ("e", "–", "0", "")
    stopped = SweepSystem(label="e", line="", place="e", faults=("seed 0: loss is nan",))
    page = page_of(content(more, [*POINTS, stopped], faults={"e": "seed 0: loss is nan"}, notes=["No p is below 0.1."]))
    assert "## Errors\n\ne: seed 0: loss is nan\n\n" in page
    assert "No p is below 0.1." in page
    assert sweep_chart(content(more, [*POINTS, stopped])) == sweep_chart(content(table))


def test_finding_lists_systems_above_below_and_not_significant(table):
    assert finding(table, MEAN) == (
        f"On {MEAN}, above a: b (+10.00 [+5.00, +15.00]); below a: d (-10.00 [-15.00, -5.00]); "
        "no significant difference from a: c."
    )
    assert finding(table.filter(dataset="mr all"), "mr all") == ""


def test_chart_by_setting_shows_intervals_and_published_line(table):
    chart = sweep_chart(content(table, axis="momentum"))
    assert chart is not None
    assert chart.label.startswith(f"{MEAN}, × 100, with 95 % interval by momentum. a: 50.0; b: 60.0")
    assert "published" in chart.svg
    assert chart == sweep_chart(content(table, axis="momentum"))


def test_page_starts_with_the_finding_and_contains_all_sets(table):
    page = page_of(content(table))
    assert page.startswith(f"# Systems\n\nOn {MEAN}, above a: b (")
    assert f"](scores.svg)\n\n## {MEAN} (spearman, all), compared with a\n\n" in page
    assert "| system | stsb dev |" in page
    assert "## All sets\n\n" in page
    assert "stsb dev (spearman, all), compared with a" in page
