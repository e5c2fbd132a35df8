"""A study for people: told apart only where interval and p agree, one column a set, a picture of equal bytes."""

import polars as pl
import pytest

from models.evaluation.study import MEAN
from models.report.study import comparisons, set_rows, shown_set, study_page
from models.report.study_plot import study_plot
from storage.artifacts.schemas import STUDY


def row(label: str, dataset: str, mean: float, gain: tuple[float, float, float, float] | None = None, **other: object):
    figure = {"metric": "spearman", "protocol": "all", "sd": 0.01, "ci_low": mean - 0.02, "ci_high": mean + 0.02}
    names = ("difference", "difference_low", "difference_high", "p_value")
    differences = dict(zip(names, gain or (None,) * 4, strict=True))
    place = {"label": label, "dataset": dataset, "mean": mean, "seeds": 3, "reference": "a"}
    return place | figure | differences | other


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
    return pl.DataFrame([*rows, row("a", "mr all", 0.7, reference=None, **accuracy)], schema=STUDY)


POINTS = [
    {"label": label, "line": "", "place": label, "published": figure}
    for label, figure in (("a", 52.5), ("b", None), ("c", 61.0), ("d", None))
]


def test_what_interval_and_corrected_p_do_not_both_say_is_not_told_apart(table):
    ((heading, rows),) = comparisons(table, MEAN)
    assert heading == "mean of sets (spearman, all), beside a"
    assert [line["told apart"] for line in rows] == ["", "above", "no", "below"]


def test_one_column_a_set_and_a_dash_where_a_point_was_not_scored(table):
    first, second, *_ = set_rows(table)
    assert list(first) == ["point", "stsb dev", "stsb test", MEAN, "mr all, accuracy"]
    assert (first["mr all, accuracy"], second["mr all, accuracy"], second[MEAN]) == ("70.00", "–", "60.00 ± 1.00")


def test_the_mean_stands_for_all_sets_unless_a_table_printed_one(table):
    assert shown_set(table, None) == MEAN
    assert shown_set(table, "stsb") == "stsb test"
    assert shown_set(table, "sts12") == MEAN
    assert shown_set(table.filter(dataset="mr all"), None) == "mr all"


def test_sets_that_are_not_compared_have_a_table_and_a_picture_of_their_first_figure():
    """Argument facets have two correlations of one set, precisions and V-measures one figure each."""
    alone = {"reference": None, "protocol": "unsupervised"}
    rows = [
        row(label, "afs test", mean, metric=metric, **alone)
        for label, mean in (("a", 0.3), ("b", 0.4))
        for metric in ("pearson", "spearman")
    ]
    afs = pl.DataFrame(rows, schema=STUDY)
    assert shown_set(afs, None) == "afs test"
    ((heading, lines),) = comparisons(afs, "afs test")
    assert heading == "afs test (spearman, unsupervised)"
    assert [(line["point"], line["mean ± sd"]) for line in lines] == [("a", "30.00 ± 1.00"), ("b", "40.00 ± 1.00")]
    assert list(set_rows(afs)[0]) == ["point", "afs test, pearson", "afs test"]
    assert study_plot(afs, POINTS[:2], "a title", "recipe", "afs test").startswith(b"\x89PNG")


def test_beside_a_dev_set_that_chose_the_encoders_another_set_is_shown():
    own = {"metric": "average precision", "protocol": "useb", "reference": None}
    rows = [row("a", "stsb dev", 0.7), row("a", "askubuntu test", 0.5, **own)]
    assert shown_set(pl.DataFrame(rows, schema=STUDY), None) == "askubuntu test"


def test_a_point_without_a_figure_keeps_its_row_and_its_reason(table):
    nothing = {"label": "e", "dataset": MEAN, "metric": "spearman", "protocol": "all", "seeds": 0, "reference": "a"}
    more = pl.concat([table, pl.DataFrame([nothing], schema=STUDY)])
    ((_, (*_, last)),) = comparisons(more, MEAN)
    assert (last["point"], last["mean ± sd"], last["seeds"], last["told apart"]) == ("e", "no figure", "0", "")
    page = study_page("Systems", more, "study.png", MEAN, {"e": "seed 0: loss is nan"}, ["No p is below 0.1."])
    assert "## What went wrong\n\n- e: no figure: seed 0: loss is nan\n\nNo p is below 0.1.\n\n" in page
    point = {"label": "e", "line": "", "place": "e", "published": None}
    assert study_plot(more, [*POINTS, point], "", "recipe", MEAN) == study_plot(table, POINTS, "", "recipe", MEAN)


def test_the_page_leads_with_all_sets_and_shows_one_in_full(table):
    page = study_page("Systems", table, "study.png", MEAN, {}, [])
    assert page.startswith("# Systems\n\n![plot](study.png)\n\n## All sets\n\n| point | stsb dev |")
    assert "## mean of sets (spearman, all), beside a" in page
    assert "| b | 60.00 ± 1.00 | [58.00, 62.00] | 3 | +10.00 |" in page
    alone = study_page("Momentum", table.filter(dataset="stsb test"), "study.png", "stsb test", {}, [])
    assert "All sets" not in alone


@pytest.mark.parametrize("axis", ["recipe", "training.lr"])
def test_equal_tables_give_equal_pictures_of_settings_and_of_systems(table, axis):
    picture = study_plot(table, POINTS, "a title", axis, MEAN)
    assert picture.startswith(b"\x89PNG")
    assert picture == study_plot(table, POINTS, "a title", axis, MEAN)
    unprinted = [point | {"published": None} for point in POINTS]
    assert picture != study_plot(table, unprinted, "a title", axis, MEAN)
