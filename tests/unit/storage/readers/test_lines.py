"""Plain text: a sentence per line, or the authors' pairs of views between tabs."""

import gzip
import subprocess
import zipfile
from tempfile import NamedTemporaryFile

import polars as pl
import pytest

from bsl.storage.errors import SourceError
from bsl.storage.readers import blocks, lines
from bsl.storage.readers.columns import Columns
from bsl.storage.readers.read_report import ReadReport
from bsl.storage.sources.own_text import records, text_sources
from bsl.storage.sources.read import read_beside, read_source
from bsl.storage.sources.reading_config import ReadingConfig
from bsl.storage.sources.sources import SourceSpec, resolve_source
from tests.every import every
from tests.reading import texts, where

VIEWS = ["A dog runs.\tA dog is running.", 'He said "no"\tHe said no.\textra', "alone", "A cat.\tThe cat.\r"]


# Line ends, byte order marks and odd characters: tests/property/test_hostile_input.py and tests/differential.
@every(["Well, yes.", "No; never.", "a | b", "a\tb", "x" * 1_000_000])
def test_lines_that_only_look_like_a_table_are_read(line):
    with NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join([line, "So it is.", "", line, line]))
        file.flush()
        assert texts(file.name, ReadReport("lines")) == [line, "So it is.", "", line, line]


def test_invalid_utf8_is_counted_with_its_line(write, report):
    assert texts(write("a.txt", b"one\ntwo \xff\nthree\n\xc3\nfive"), report) == ["one", "three", "five"]
    assert where(report) == [
        (2, "not UTF-8 (invalid start byte at byte 4)"),
        (4, "not UTF-8 (unexpected end of data at byte 0)"),
    ]
    assert report.bad[0].example == "two \ufffd"


def test_lines_ended_by_carriage_returns_are_refused(write, report):
    for end in (b"", b"\n"):
        with pytest.raises(SourceError, match=r"no line feed between lines, but carriage returns.*Unix or Windows"):
            texts(write("a.txt", b"one\rtwo\rthree" + end), report)
    assert texts(write("b.txt", b"one\rmore\ntwo\r"), report) == ["one\rmore", "two"]
    assert texts(write("c.txt", b"one\r\n"), report) == ["one"]


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


@pytest.mark.parametrize("packed", [True, False])
def test_tab_separated_views_file_of_the_authors_is_read(tmp_path, report, packed):
    text = tmp_path / "back_translated_nli" / "back_translated_nli.txt"
    text.parent.mkdir()
    text.write_text("\n".join(VIEWS))
    if packed:
        with zipfile.ZipFile(f"{text}.zip", "w") as archive:
            archive.write(text, text.name)
        text.unlink()
    source = resolve_source(SourceSpec(dataset="back_translated_nli"), str(tmp_path))
    frame = pl.concat(read_beside(source, "view", report, max_bad_share=0.5))
    assert frame.rows() == [
        ("A dog runs.", "A dog is running."), ('He said "no"', "He said no."), ("A cat.", "The cat."),
    ]  # fmt: skip
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
    "tabs": ("id\ttext\n1\tOne.\n2\tTwo.\n", "separated by '\\\\t'.*`mv .*a.txt .*a.tsv`"),
    "tabs without names": ("1\tOne cat.\n2\tTwo cats.\n", "cut -f 2 .*a.txt > text.txt"),
    "semicolons": ("id;text\n1;One, two.\n2;Three.\n", "separated by ';'.*`mv .*a.txt .*a.csv`"),
    "commas": ('id,text\n1,"One, two."\n2,Three.\n', "separated by ','.*`mv .*a.txt .*a.csv`"),
}


@pytest.mark.parametrize(("content", "message"), TABLES.values(), ids=TABLES)
def test_table_is_refused_as_lines(write, report, content, message):
    with pytest.raises(SourceError, match=message):
        texts(write("a.txt", content), report)


@pytest.mark.parametrize(
    ("name", "renamed"), [("a.b.txt.gz", "a.b.csv.gz"), ("a.text", "a.csv"), ("a.txt.GZ", "a.csv.GZ")]
)
def test_renamed_table_keeps_the_suffix_of_its_compression(tmp_path, report, name, renamed):
    """Regression: a compressed table was to be renamed to `.csv`, which was refused as gzip data."""
    path, content = tmp_path / name, TABLES["commas"][0].encode()
    path.write_bytes(gzip.compress(content) if name.lower().endswith("gz") else content)
    with pytest.raises(SourceError) as refused:
        texts(str(path), report)
    subprocess.run(str(refused.value).split("`")[1], shell=True, check=True)
    (source,) = text_sources(ReadingConfig(), [str(tmp_path / renamed)])
    assert pl.concat(records(source, report))["text"].to_list() == ["One, two.", "Three."]
