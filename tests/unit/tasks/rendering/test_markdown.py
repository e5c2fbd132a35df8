"""Markdown pages show scores as the papers do, published rows below them, and charts as files."""

import polars as pl

from bsl.models.evaluation.published import rows_of
from bsl.tasks.evaluation.kinds import tables
from bsl.tasks.rendering.blocks import Charts, Code, Facts, Folded, Lineage, Page, Part, Prose, Row, Station, Table
from bsl.tasks.rendering.charts import Mark, score_chart
from bsl.tasks.rendering.markdown import markdown
from bsl.tasks.rendering.paper_tables import tables_of

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


def page_of(*blocks, lead=(), html_only=False):
    parts = [Part("Part", blocks, html_only=html_only)]
    return Page(title="A page", word="BETTER", sentence="than the start.", lead=lead, parts=parts)


def scored(sets: tuple[str, ...], published: tuple[str, ...]) -> str:
    rows = [row for system in published for row in rows_of(system)]
    return markdown(page_of(*tables_of(scores_of(sets), tables(), rows, "after BSL")))


def test_average_column_appears_only_with_all_seven_sets() -> None:
    text = scored(SETS, ())
    assert "| after BSL | spearman, all | 50.00 | 51.00 | 52.00 | 53.00 | 54.00 | 55.00 | 56.00 | 53.00 |" in text
    two = scored(SETS[:2], ())
    assert "| system | figure | STS12 | STS13 |\n" in two
    assert "| after BSL | spearman, all | 50.00 | 51.00 |\n" in two


def test_published_rows_show_their_source() -> None:
    text = scored(SETS, ("BSL-BERT", "IS-BERT-NLI"))
    assert "| BSL-BERT: BSL, Table 1 | published |" in text
    assert "| 73.74 | 70.40 | 72.03 |" in text
    assert "| IS-BERT-NLI: BSL, Table 1, quoted from Zhang et al., 2020 | published |" in text
    assert "published" not in scored(SETS, ())


def test_published_rows_have_only_the_scored_columns() -> None:
    text = scored(("stsb",), ("BSL-BERT",))
    assert "| system | figure | STS-B |" in text
    assert "| BSL-BERT: BSL, Table 1 | published | 73.74 |" in text


def test_page_starts_with_the_verdict_and_renders_every_block() -> None:
    chart = score_chart([Mark("x", "before", 50.0)], "on a set")
    blocks = [
        Table("Rows", ["a"], [Row(["1.00 [0.50, 1.50]"])]),
        Table("None here", [], []),
        Prose("Under", under=True),
        Facts({"name": "value|"}),
        Code("a\n```\nb"),
        Lineage([[Station("corpus", ["abc", "7 rows"], made=True)]]),
        Folded("More", [Prose("inside")]),
    ]
    text = markdown(page_of(*blocks, lead=[Charts([chart], lead=True)]))
    assert text.startswith("# A page\n\n**BETTER** than the start.\n\n![on a set. x: 50.0](scores.svg)\n\n## Part\n")
    for part in (
        "Rows:\n\n| a |\n| --- |\n| 1.00 [0.50, 1.50] |",
        "None here: none.",
        "### Under",
        "| name | value\\| |",
        "````\na\n```\nb\n````",
        "- corpus: abc, 7 rows",
        "### More\n\ninside",
    ):
        assert part in text
    assert "![" not in markdown(page_of(*blocks, lead=[Charts([chart])]), pictures=False)


def test_html_only_part_has_no_markdown_or_files() -> None:
    charts = Charts([score_chart([Mark("x", "before", 50.0)], "on a set")])
    assert "Part" not in markdown(page_of(charts, html_only=True))
    assert page_of(charts, html_only=True).chart_files == []
    assert [chart.file for chart in page_of(charts).chart_files] == ["scores.svg"]
