"""The run's page: figures as the papers print them, and beside them what others printed."""

import polars as pl

from models.evaluation.published import published_tables
from models.report.page import ReportContent, page
from tasks.evaluation.kinds import tables

SETS = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr")


def scores_of(sets: tuple[str, ...]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "model": "after BSL", "dataset": name, "subset": "all", "split": "test", "metric": "spearman",
            "protocol": "all", "value": 0.5 + number / 100, "n": 10, "ci_low": 0.4, "ci_high": 0.6,
            "signature": f"set:{name}/test|metric:spearman",
        }
        for number, name in enumerate(sets)
    )  # fmt: skip


def page_of(sets: tuple[str, ...], published: tuple[str, ...]) -> str:
    return page(
        ReportContent(
            title="nli: BSL-BERT",
            scores=scores_of(sets),
            comparison=None,
            missing={},
            tables=tables(),
            published=published_tables(published, set(sets)),
            examples=[],
            outcomes=[],
            verdict=None,
            artifacts={},
            curves=("curve.png",),
        )
    )


def test_a_run_with_all_seven_sets_prints_their_average() -> None:
    text = page_of(SETS, ())
    assert "| after BSL | spearman, all | 50.00 | 51.00 | 52.00 | 53.00 | 54.00 | 55.00 | 56.00 | 53.00 |" in text
    two = page_of(SETS[:2], ())
    assert "| system | figure | STS12 | STS13 |\n" in two
    assert "| after BSL | spearman, all | 50.00 | 51.00 |\n" in two


def test_published_rows_stand_under_the_name_of_who_printed_them() -> None:
    text = page_of(SETS, ("BSL-BERT", "IS-BERT-NLI"))
    assert "Published, not measured here: semantic textual similarity, seven sets." in text
    assert "| 73.74 | 70.40 | 72.03 | BSL, Table 1 |" in text
    assert "| 69.21 | 64.25 | 66.58 | BSL, Table 1, quoted from Zhang et al., 2020 |" in text
    assert "Published" not in page_of(SETS, ())


def test_published_columns_are_those_that_the_run_scored() -> None:
    text = page_of(("stsb",), ("BSL-BERT",))
    assert "| published system | figure | stsb | source |" in text
    assert "| BSL-BERT | spearman, all | 73.74 | BSL, Table 1 |" in text
