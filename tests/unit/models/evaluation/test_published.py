"""Every published figure is the one printed in its paper, and averages are those of their rows."""

import os
import re
from collections import defaultdict
from itertools import groupby, takewhile
from pathlib import Path

import pytest

from bsl.models.evaluation.published import AVERAGE, columns_of, published_rows, rows_of
from bsl.storage.datasets.registry import DATASETS
from tests.every import every

MIRROR = os.environ.get("BSL_DATA_MIRROR")
SHARED = Path(MIRROR).resolve().parent if MIRROR else None
TEXTS = {"BSL": "bsl.txt", "IS-BERT": "is-bert.txt", "SCL": "supervised-contrastive.txt"}
PRINTED = [  # every table of results; the papers' other tables show settings and examples
    *(("BSL", number) for number in ["1", "2", "3", "4", "6", "7", "9", "10"]),
    *(("IS-BERT", number) for number in ["1", "2", "3", "4"]),
    *(("SCL", number) for number in ["2", "3", "4", "5", "6", "7"]),
]
MARK = re.compile(r"\s*\[?([†‡*◦])\]?$")
PINNED = re.compile(r"README\.md at [0-9a-f]{7}$")  # figures read from that file, not from REFERENCE.md


def beside_the_mirror(name):
    if SHARED is None or not (SHARED / name).exists():
        pytest.skip(f"{name} does not exist; BSL_DATA_MIRROR must name a folder beside it")
    return SHARED / name


def rows_in(paper, table):
    return [row for row in published_rows() if (row.paper, row.table) == (paper, table)]


def captioned(text, number):
    """Return the tab-separated lines above a table's caption, header first."""
    lines = text.split(f"\nTable {number}: ", 1)[0].rstrip("\n").split("\n")
    return [line.split("\t") for line in list(takewhile(lambda line: "\t" in line, reversed(lines)))[::-1]]


def uncaptioned(text):
    """Return SCL's tables by number: its text lacks captions, so their order identifies them."""
    tables = []
    for line in (line for line in text.split("\n") if line.startswith("| ")):
        cells = [cell.strip() for cell in line.removeprefix("|").removesuffix("|").split("|")]
        if "Avg." in cells:
            # Above rows named after a setting, the empty heading has moved to the end.
            tables.append([cells if cells[0] == "Model" else ["", *cells[:-1]]])
        elif tables:
            tables[-1].append(cells)
    return dict(zip("234567", tables, strict=True))


def cells_of(lines):
    header, *body = lines
    return [
        (MARK.sub("", line[0]), heading, figure)
        for line in body
        if len(line) == len(header) and not line[0].startswith(("<i>", "---"))  # a group's heading, a rule
        for heading, text in zip(header[1:], line[1:], strict=True)
        for figure in text.split(" \\pm ")
    ]


def heading_of(row, column):
    if (row.paper, row.table) in {("BSL", "6"), ("BSL", "7")}:
        return row.system.rsplit(" ", 1)[1]
    if row.suite in {"afs", "stsb-supervised"}:
        return {"pearson": "r", "spearman": "ρ"}[row.metric]
    own = {AVERAGE: "Avg.", "sst5": "SST5", "stsb/dev": "STS-B-dev"}
    return own.get(column) or DATASETS[column].heading


def spelt(heading):
    return heading.replace("-", "").upper().replace("SST2", "SST")


@every(PRINTED)
def test_published_cells_equal_the_printed_tables(paper, table):
    text = (beside_the_mirror("papers") / TEXTS[paper]).read_text(encoding="utf-8")
    lines = uncaptioned(text)[table] if paper == "SCL" else captioned(text, table)
    printed = [(label, spelt(heading), figure) for label, heading, figure in cells_of(lines)]
    ours = [
        (row.printed, spelt(heading_of(row, column)), figure or "-")
        for row in rows_in(paper, table)
        for column, figure in row.cells.items()
    ]
    assert ours == printed


def test_no_table_of_results_is_missing_and_rows_of_a_table_are_contiguous():
    here = [(row.paper, row.table) for row in published_rows() if row.kind == "paper"]
    assert [place for place, _ in groupby(here)] == PRINTED


NOT_THE_MEAN = {  # printed averages that differ from the mean of the printed cells, even when it is truncated
    ("SBERT", "sts"): "its source, SBERT's Table 1, prints 74.89 above cells whose mean is 74.86",
    ("BERT avg.", "senteval"): "its source, SBERT's Table 5, prints 84.94; the mean is 84.95",
    ("IS-BERT-task", "senteval"): "IS-BERT's Table 3 prints 85.91; the mean is 85.83",
    ("SBERT baseline (SCL)", "senteval-8"): "SCL prints 75.56; the mean is 75.585",
    ("3palln-lambda0.5-SCL", "senteval-8"): "SCL prints 76.37; the mean is 76.386",
    ("allpalln-lambda0.3-SCL", "senteval-8"): "SCL prints 76.16; the mean is 76.175",
    ("SCL, λ = 0.3", "senteval-8"): "the same row in SCL's Table 4",
    ("SCL, T = 1.0", "senteval-8"): "SCL's Table 5 prints MRPC as `73.`, Tables 3 and 4 as 73.1, which gives 76.28",
    ("PromptBERT, BERT-base", "sts"): "its authors print 78.54 ± 0.15 over runs; the mean of the means is 78.52",
}


def test_averages_equal_row_means_except_known_misprints():
    off = set()
    for row in published_rows():
        figures = row.values
        average = figures.pop(AVERAGE, None)
        if average is None or not figures:
            continue
        assert len(figures) == len(columns_of(row.suite)) - 1
        decimals = len(row.cells[AVERAGE].partition(".")[2])
        if abs(sum(figures.values()) / len(figures) - average) > 1.01 * 10**-decimals:
            off.add((row.system, row.suite))
    assert off == set(NOT_THE_MEAN)


def test_system_has_the_same_score_in_every_table_and_columns_are_declared_datasets():
    figures = defaultdict(set)
    for row in published_rows():
        for column, value in row.values.items():
            figures[row.system, row.suite, column, row.metric, row.protocol].add(value)
    assert {place: values for place, values in figures.items() if len(values) > 1} == {}
    columns = {column.split("/")[0] for row in published_rows() for column in row.cells}
    assert columns - {AVERAGE} <= set(DATASETS)


def test_field_scores_appear_in_reference_document():
    text = beside_the_mirror("REFERENCE.md").read_text(encoding="utf-8")
    read_there = [row for row in published_rows() if row.kind == "field" and not PINNED.search(row.quoted_from)]
    assert len(read_there) > 20
    for row in read_there:
        assert all(re.search(rf"(?<![\d.]){re.escape(figure)}(?!\d)", text) for figure in row.cells.values()), row


def test_ambiguous_printed_names_map_to_distinct_systems():
    names = {row.system for row in published_rows() if row.printed.startswith("IS-BERT")}
    assert names == {"IS-BERT-NLI", "IS-BERT-task", "IS-BERT-AFS"}
    flows = [row.system for row in rows_in("BSL", "1") if row.printed == "BERT-flow"]
    assert flows == ["BERT-flow", "BERT-flow on SBERT"]


def test_rows_of_a_system_have_source_and_printed_decimals_and_another_name_suggests_the_nearest():
    with pytest.raises(ValueError, match=r"unknown published system 'BSL-BRET'. Did you mean 'BSL-BERT.*all \d+\."):
        rows_of("BSL-BRET")
    (tfidf,) = (row for row in rows_of("Unigram-TFIDF") if row.suite == "senteval")
    assert (tfidf.cells["mr"], tfidf.cells["trec"], tfidf.cells["sst2"]) == ("73.7", "85.0", "")
    assert tfidf.source == "BSL, Table 2, quoted from Hill et al., 2016"
