"""Files of any format: their suffixes and columns, and too many bad records."""

import pytest

from bsl.storage.errors import SourceError
from bsl.storage.readers.columns import require
from bsl.storage.readers.formats import FORMATS, format_of
from bsl.storage.readers.read_report import NAME_COLUMNS
from bsl.storage.sources import reading_config
from bsl.storage.sources.sources import SourceSpec, resolve_source
from tests.every import every
from tests.reading import texts


def test_missing_column_error_lists_columns_and_suggests_a_name(write, report):
    path = write("a.jsonl", '{"gold_label": "-", "sentence1": "a", "sentence2": "b"}')
    with pytest.raises(SourceError, match="did you mean 'sentence") as caught:
        texts(path, report, "sentence")
    said = str(caught.value)
    assert "column 'sentence' is missing; found 'gold_label', 'sentence1', 'sentence2', expected 'sentence'" in said
    assert said.endswith(f"Name the right columns {NAME_COLUMNS}.")


@pytest.mark.parametrize(("count", "end"), [(20, "'c19', expected"), (21, "'c19', … 21 in all, expected")])
def test_missing_column_error_lists_twenty_columns(count, end):
    with pytest.raises(SourceError, match=end):
        require("a.csv", [f"c{number}" for number in range(count)], ["text"])


@every(
    [
        ("a.docx", "a.txt, one sentence"),
        ("a.XLSX", "a.csv in the spreadsheet"),
        ("a.pdf.gz", "as a.txt"),
        ("a", "such as .csv"),
        ("a.csv.xz", "Unpack it"),
        ("a.tar.gz", "Unpack it"),
        ("a.zip", "Unpack it"),
        ("a.feather", "Rename it to a.arrow."),
    ]
)
def test_unknown_file_suffix_raises_source_error(path, remedy):
    with pytest.raises(SourceError, match=r"suffix, expected one of \.txt") as caught:
        format_of(path)
    assert remedy in str(caught.value)
    assert "in a recipe set `ingest.sources[].format`" in str(caught.value)


def test_report_check_fails_above_max_bad_share_and_stores_the_first_20_bad_records(write, report):
    path = write("a.jsonl", b"\n".join([b'{"text": "a"}'] * 970 + [b"{"] * 30))
    texts(path, report)
    assert [record.line for record in report.bad] == list(range(971, 991))
    report.check(max_bad_share=0.03)
    line = f"{path}, line 971: not JSON"
    with pytest.raises(
        SourceError, match=rf"30 of 1,000 records \(3\.00%\) .*= 2\.90% allows.*{line}.* raise `ingest\.max"
    ):
        report.check(max_bad_share=0.029)
    with pytest.raises(SourceError, match=r"\(3\.00%\) cannot be read: "):
        report.check(max_bad_share=0.0)


@every(
    [
        {"dataset": ""},
        {"path": "a.txt", "columns": ("text", "text")},
        {"path": "a.txt", "columns": ("text",), "label": "text"},
        {"path": "a\0b"},
        {"path": "ftp://user:planted-secret@host/a.txt"},
    ]
)
def test_invalid_source_spec_raises_a_validation_error(fields):
    with pytest.raises(ValueError, match="1 validation error") as refusal:
        SourceSpec(**fields)
    assert "planted-secret" not in str(refusal.value)


@every(["x" * 5000, "/" + "y/" * 3000, "no/such\nfile"])
def test_path_that_the_filesystem_cannot_store_raises_source_error(path):
    with pytest.raises(SourceError):
        resolve_source(SourceSpec(path=path))


def test_formats_named_in_help_are_those_with_a_suffix():
    assert set(reading_config.FORMATS.split(", ")) == {name for name, known in FORMATS.items() if known.suffixes}
