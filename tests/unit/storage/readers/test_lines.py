"""Plain text: a sentence per line, or the authors' pairs of views between tabs."""

import zipfile

import polars as pl
import pytest

from bsl.storage.errors import SourceError
from bsl.storage.readers import blocks, lines
from bsl.storage.readers.columns import Columns
from bsl.storage.readers.read_report import ReadReport
from bsl.storage.sources.read import read_beside, read_source
from bsl.storage.sources.sources import SourceSpec, resolve_source
from tests.reading import texts, where

NUL = "\x00"
VIEWS = ["A dog runs.\tA dog is running.", 'He said "no"\tHe said no.\textra', "alone", "A cat.\tThe cat.\r"]


@pytest.mark.parametrize(
    ("content", "read"),
    [
        ("one\r\ntwo\n\nthree", ["one", "two", "", "three"]),
        (
            f"a{NUL}b\n{'x' * 1_000_000}\nform\x0cfeed\u2028line\n",
            [f"a{NUL}b", "x" * 1_000_000, "form\x0cfeed\u2028line"],
        ),
        (b"\xef\xbb\xbfone\ntwo", ["one", "two"]),
    ],
    ids=["line ends", "odd characters", "byte order mark"],
)
def test_text_file_lines_are_read_as_records(write, report, content, read):
    assert texts(write("a.txt", content), report) == read
    assert (report.records, report.rejected) == (len(read), 0)


def test_invalid_utf8_is_counted_with_its_line(write, report):
    assert texts(write("a.txt", b"one\ntwo \xff\nthree\n\xc3\nfive"), report) == ["one", "three", "five"]
    assert where(report) == [
        (2, "not UTF-8 (invalid start byte at byte 4)"),
        (4, "not UTF-8 (unexpected end of data at byte 0)"),
    ]
    assert report.bad[0].example == "two \ufffd"


def test_empty_file_without_records_fails_the_report_check(write, report):
    assert list(lines.read(write("a.txt", b""), Columns(("text",)), report)) == []
    with pytest.raises(SourceError, match="test contains no records"):
        report.check(0.01)


@pytest.mark.parametrize("start", ["x^2", "x\x01 y", "x^"])
def test_line_starting_like_zlib_data_is_read_as_text(write, report, monkeypatch, start):
    """Polars takes `x^` for zlib's magic bytes, and returns `2` for `x^2`."""
    assert texts(write("a.txt", f"{start}\nb\n"), report) == [start, "b"]
    assert texts(write("a.csv", f"text,n\n{start},1\nb,2\n"), ReadReport("csv")) == [start, "b"]
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 4)
    frames = lines.read(write("b.txt", f"aaa\n{start}\nb\n"), Columns(("text",)), ReadReport("blocks"))
    assert pl.concat(frames)["text"].to_list() == ["aaa", start, "b"]


def views_of(tmp_path, packed):
    folder = tmp_path / "back_translated_nli"
    folder.mkdir()
    if packed:
        with zipfile.ZipFile(folder / "back_translated_nli.txt.zip", "w") as archive:
            archive.writestr("back_translated_nli.txt", "\n".join(VIEWS))
    else:
        (folder / "back_translated_nli.txt").write_text("\n".join(VIEWS))
    return resolve_source(SourceSpec(dataset="back_translated_nli"), str(tmp_path))


@pytest.mark.parametrize("packed", [True, False])
def test_tab_separated_views_file_of_the_authors_is_read(tmp_path, report, packed):
    source = views_of(tmp_path, packed)
    frame = pl.concat(read_beside(source, "view", report, max_bad_share=0.5))
    assert frame.to_dict(as_series=False) == {
        "text": ["A dog runs.", 'He said "no"', "A cat."],
        "view": ["A dog is running.", "He said no.", "The cat."],
    }
    assert where(report) == [(3, "1 field, expected at least 2, separated by tabs")]
    sentences = pl.concat(read_source(source, ReadReport("texts"), max_bad_share=0.5))
    assert sentences.columns == ["text"], "views are no sentences of the corpus"


def test_views_column_requires_a_single_text_column(write, report):
    path = write("own.csv", "sentence,paraphrase\nA dog runs.,A dog is running.\n")
    (frame,) = read_beside(resolve_source(SourceSpec(path=path)), "paraphrase", report, 0.0)
    assert frame.rows() == [("A dog runs.", "A dog is running.")]
    two = resolve_source(SourceSpec(path=write("two.csv", "sentence1,sentence2,view\na,b,c\n")))
    with pytest.raises(SourceError, match="has sentences in 'sentence1', 'sentence2', expected one text column"):
        list(read_beside(two, "view", report, 0.0))


def test_missing_views_file_error_names_the_download(tmp_path):
    with pytest.raises(SourceError, match=r"Download the authors' back-translated corpus .*/ConGen"):
        resolve_source(SourceSpec(dataset="back_translated_nli"), str(tmp_path))


TABLES = {
    "tabs": ("id\ttext\n1\tOne.\n2\tTwo.\n", "separated by '\\\\t'.*`cp .*a.txt .*a.tsv`"),
    "tabs without names": ("1\tOne cat.\n2\tTwo cats.\n", "cut -f 2 .*a.txt > text.txt"),
    "semicolons": ("id;text\n1;One, two.\n2;Three.\n", "separated by ';'.*`cp .*a.txt .*a.csv`"),
    "commas": ('id,text\n1,"One, two."\n2,Three.\n', "separated by ','.*`cp .*a.txt .*a.csv`"),
}


@pytest.mark.parametrize(("content", "message"), TABLES.values(), ids=TABLES)
def test_table_is_refused_as_lines(write, report, content, message):
    with pytest.raises(SourceError, match=message):
        texts(write("a.txt", content), report)


@pytest.mark.parametrize("line", ["Well, yes.", "No; never.", "a | b", "a\tb"])
def test_sentences_with_separators_are_no_table(write, report, line):
    lines = [line, "So it is.", *[line] * 3]
    assert texts(write("a.txt", "\n".join(lines)), report) == lines
