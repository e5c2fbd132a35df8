"""The page of a sweep: significant only where interval and p agree, one column a set, a chart of equal bytes."""

import polars as pl
import pytest

from bsl.models.evaluation.significance.paired import Difference
from bsl.models.evaluation.sweep import MEAN
from bsl.storage.artifacts.schemas import SWEEP
from bsl.tasks.figures import SweepFigures
from bsl.tasks.rendering.markdown import markdown
from bsl.tasks.reporting.sweep.page import (
    comparisons,
    finding,
    set_rows,
    shown_set,
    sweep_chart,
    sweep_page,
)
from bsl.tasks.reporting.sweep.system import SweepSystem

BARE = {"ci_low": None, "ci_high": None, "sd": None, "reference": None}


def row(label, dataset, mean, gain=None, **other):
    figure = {"metric": "spearman", "protocol": "all", "sd": 0.01, "ci_low": mean - 0.02, "ci_high": mean + 0.02}
    names = ("difference", "difference_low", "difference_high", "p_value")
    differences = dict(zip(names, gain or (None,) * 4, strict=True))
    place = {"label": label, "dataset": dataset, "mean": mean, "seeds": 3, "reference": "a", "decides": True}
    return place | figure | differences | {"verdict": gain and Difference(*gain).verdict} | other


def table_of(*rows):
    return pl.DataFrame(rows, schema=SWEEP)


SYSTEMS = (
    ("a", 0.50, None),
    ("b", 0.60, (0.10, 0.05, 0.15, 0.010)),
    ("c", 0.53, (0.03, 0.01, 0.05, 0.300)),
    ("d", 0.40, (-0.10, -0.15, -0.05, 0.010)),
)
ACCURACY = row("a", "mr all", 0.7, metric="accuracy", protocol="fast", **BARE)
TABLE = table_of(*(row(one, name, *of) for name in ("stsb dev", "stsb test", MEAN) for one, *of in SYSTEMS), ACCURACY)
TEST = TABLE.filter(dataset="stsb test")
FACETS = table_of(
    *(
        row(label, "afs test", mean, metric=metric, reference=None, protocol="unsupervised")
        for label, mean in (("a", 0.3), ("b", 0.4))
        for metric in ("pearson", "spearman")
    )
)  # two correlations of one set
POINTS = [
    SweepSystem(label=label, line="", place=label, published=figure)
    for label, figure in (("a", 52.5), ("b", None), ("c", 61.0), ("d", None))
]


def chart_of(table=TABLE, systems=POINTS, axis="recipe", shown=MEAN):
    return sweep_chart(table, shown, systems, axis)


def figures_of(shown=MEAN, faults=None, draws=None):
    return SweepFigures(shown=shown, faults=faults or {}, notes=[], draws=draws)


def page_of(table, systems, faults=None, axis="recipe"):
    figures = figures_of(faults=faults)
    return markdown(sweep_page("Systems", table, figures, chart_of(table, systems, axis), (), []))


def test_significance_requires_both_interval_and_corrected_p_value():
    ((heading, rows),) = comparisons(TABLE, figures_of())
    assert heading == "mean of sets (spearman, all), compared with a"
    assert [line["significant"] for line in rows] == ["", "above", "no", "below"]
    assert list(rows[1].values()) == [
        "b", "60.00 ± 1.00", "[58.00, 62.00]", "3", "+10.00 [+5.00, +15.00]", "0.010", "above",
    ]  # fmt: skip
    # With 599 draws, 3 comparisons reach 3 × 2 / 600 at best.
    ((_, bounded),) = comparisons(TABLE, figures_of(draws=599))
    assert [line["p"] for line in bounded] == ["", "≤ 0.01", "0.300", "≤ 0.01"]
    assert finding(TABLE, MEAN) == (
        f"On {MEAN}, above a: b (+10.00 [+5.00, +15.00]); below a: d (-10.00 [-15.00, -5.00]); "
        "no significant difference from a: c."
    )
    assert finding(TABLE.filter(dataset="mr all"), "mr all") == ""
    grid = TEST.with_columns(pl.col("label", "reference").replace({"a": "lr 1, tiny", "c": "lr 2, tiny"}))
    assert finding(grid, "stsb test").endswith("no significant difference from “lr 1, tiny”: “lr 2, tiny”.")


def test_own_text_and_scored_pairs_have_separate_comparisons():
    question = {"metric": "mean reciprocal rank"}
    loss = row("b", "own:t title", 0.1, (-0.1, -0.2, -0.05, 0.01), **question)
    both = pl.concat([TEST, table_of(row("a", "own:t title", 0.2, **question), loss)])
    assert [heading for heading, _ in comparisons(both, figures_of("stsb test"))] == [
        "stsb test (spearman, all), compared with a",
        "own:t title (mean reciprocal rank, all), compared with a",
    ]
    assert "On own:t title, below a: b (-10.00 [-20.00, -5.00])." in finding(both, "stsb test")


def test_set_table_has_a_column_for_each_set_and_metric_and_a_dash_for_missing_scores():
    first, second, *_ = set_rows(TABLE)
    assert list(first) == ["system", "stsb dev", "stsb test", MEAN, "mr all, accuracy"]
    assert (first["mr all, accuracy"], second["mr all, accuracy"], second[MEAN]) == ("70.00", "–", "60.00 ± 1.00")
    assert list(set_rows(FACETS)[0]) == ["system", "afs test, pearson", "afs test"]
    two = table_of(ACCURACY, row("a", "mr all", 0.8, metric="accuracy", protocol="senteval", **BARE))
    assert set_rows(two) == [
        {"system": "a", "mr all, accuracy (fast)": "70.00", "mr all, accuracy (senteval)": "80.00"}
    ]


OWN = {"metric": "average precision", "protocol": "ranked", "reference": None}
SHOWN = {
    "mean": (TABLE, None, MEAN),
    "declared": (TABLE, "stsb", "stsb test"),
    "declared, without scores": (TABLE, "sts12", MEAN),
    "deciding": (pl.concat([TEST, table_of(row("a", "sickr test", 0.5, decides=False))]), None, "stsb test"),
    "accuracy": (TABLE.filter(dataset="mr all"), None, "mr all"),
    "facets": (FACETS, None, "afs test"),
    "not the dev set": (table_of(row("a", "stsb dev", 0.7), row("a", "toy test", 0.5, **OWN)), None, "toy test"),
}


@pytest.mark.parametrize(("table", "declared", "shown"), SHOWN.values(), ids=SHOWN)
def test_chart_shows_the_mean_of_sets_or_the_set_that_decides(table, declared, shown):
    assert shown_set(table, declared) == shown


def test_uncompared_set_has_table_and_chart_of_headline_metric():
    ((heading, lines),) = comparisons(FACETS, figures_of("afs test"))
    assert heading == "afs test (spearman, unsupervised)"
    assert [(line["system"], line["mean ± sd"]) for line in lines] == [("a", "30.00 ± 1.00"), ("b", "40.00 ± 1.00")]
    chart = chart_of(FACETS, POINTS[:2], shown="afs test")
    assert "b: 40.0; a: 30.0; a (published): 52.5" in chart.label


def test_legend_explains_marks_only_of_a_chart_that_has_them():
    assert "a cross significantly below" in page_of(TABLE, POINTS)
    assert "cross" not in page_of(TABLE, POINTS, axis="momentum")  # there it is a published figure


def test_chart_by_setting_shows_intervals_and_published_line():
    chart = chart_of(axis="momentum")
    assert chart.label.startswith(f"{MEAN}, × 100, with 95 % interval by momentum. a: 50.0; b: 60.0")
    assert "published" in chart.svg
    weighted = [one.model_copy(update={"published_as": "mean of sts, wmean"}) for one in POINTS]
    assert (
        "with 95 % interval; published: mean of sts, wmean by momentum" in chart_of(TABLE, weighted, "momentum").label
    )
    assert chart == chart_of(axis="momentum")
    assert chart.svg != chart_of(TABLE.with_columns(ci_low=None, ci_high=None), axis="momentum").svg


def test_page_names_errors_and_single_seeds_and_its_chart_leaves_out_systems_without_scores():
    """tests/golden pins the other parts."""
    nothing = {"label": "e", "dataset": MEAN, "metric": "spearman", "protocol": "all", "seeds": 0, "reference": "a"}
    failed = SweepSystem(label="e", place="e", faults=("seed 0: loss is nan",))
    table, systems = pl.concat([TABLE, table_of(nothing)]), [*POINTS, failed]
    page = page_of(table, systems, {"e": "seed 0: loss is nan"})
    assert "| e | – |  | 0 |  |  |  |" in page
    assert "## Errors\n\ne: seed 0: loss is nan\n\n" in page
    assert "One seed" not in page
    assert "One seed" in page_of(TABLE.with_columns(seeds=1), POINTS)
    assert chart_of(table, systems) == chart_of()
