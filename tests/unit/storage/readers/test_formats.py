"""All file formats with each kind of bad input: every record is read or counted."""

import gzip
import json

import polars as pl
import pyarrow as pa
import pytest

from storage.errors import SourceError
from storage.readers import csv, jsonl, lines
from storage.readers.blocks import line_blocks
from storage.readers.columns import Columns
from storage.readers.formats import columns_of, format_of
from storage.readers.read_report import NAME_COLUMNS, ReadReport
from tests.reading import table, texts, where

PAIR = Columns(("sentence1", "sentence2"), ("gold_label",))
NUL = "\x00"


# Plain text


def test_lines(write, report):
    assert texts(write("a.txt", "one\r\ntwo\n\nthree"), report) == ["one", "two", "", "three"]
    assert (report.records, report.rejected) == (4, 0)


def test_text_keeps_nul_a_megabyte_and_odd_separators(write, report):
    content = f"a{NUL}b\n{'x' * 1_000_000}\nform\x0cfeed\u2028line\n"
    assert texts(write("a.txt", content), report) == [f"a{NUL}b", "x" * 1_000_000, "form\x0cfeed\u2028line"]


def test_invalid_utf8_in_text_is_counted_with_its_line(write, report):
    assert texts(write("a.txt", b"one\ntwo \xff\nthree\n\xc3\nfive"), report) == ["one", "three", "five"]
    assert where(report) == [
        (2, "not UTF-8 (invalid start byte at byte 4)"),
        (4, "not UTF-8 (unexpected end of data at byte 0)"),
    ]
    assert report.bad[0].example == "two \ufffd"


def test_byte_order_mark_is_not_text(write, report):
    assert texts(write("a.txt", b"\xef\xbb\xbfone\ntwo"), report) == ["one", "two"]


# JSON lines


def record(one: object, two: object = "b", label: object = "neutral") -> bytes:
    return json.dumps({"gold_label": label, "sentence1": one, "sentence2": two}).encode()


BAD_JSON = [
    (b'{"sentence1": "a", "sentence2": "b"', "not JSON"),
    (b'{"sentence1": "a", "sentence2": "b"} x', "not JSON (Extra data"),
    (b'{"sentence1": "a"}{"sentence2": "b"}', "not JSON (Extra data"),
    (b'{"sentence1": "a", "sentence2": "b",}', "not JSON"),
    (b"not json at all", "not JSON (Expecting value"),
    (b'["a", "b"]', "a list, expected an object"),
    (b'"a"', "a string, expected an object"),
    (b"null", "null, expected an object"),
    (b'{"sentence1": "\xff", "sentence2": "b"}', "not UTF-8"),
    (b'{"sentence1": "a"}', "field 'sentence2' is missing"),
    (b'{"sentence1": null, "sentence2": "b"}', "field 'sentence1' is null"),
    (b'{"sentence1": 5, "sentence2": "b"}', "field 'sentence1' is a number"),
    (b'{"sentence1": "a", "sentence2": -1.5e3}', "field 'sentence2' is a number"),
    (b'{"sentence1": "a", "sentence2": true}', "field 'sentence2' is a boolean"),
    (b'{"sentence1": ["a"], "sentence2": "b"}', "field 'sentence1' is a list"),
    (b'{"sentence1": {"a": 1}, "sentence2": "b"}', "field 'sentence1' is an object"),
    (b'{"sentence1": "half \\ud800 pair", "sentence2": "b"}', "half a surrogate pair"),
    (b'{"sentence1": "a", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
]


@pytest.mark.parametrize(("bad", "reason"), BAD_JSON, ids=[reason for _, reason in BAD_JSON])
@pytest.mark.parametrize("around", [3, 2000])
def test_bad_json_line_is_counted_with_its_line(write, report, bad, reason, around):
    good = [record(f"sentence {number}") for number in range(around)]
    path = write("a.jsonl", b"\n".join([*good, bad, *good]) + b"\n")
    frame = table(path, PAIR, report)
    assert frame["sentence1"].to_list() == [f"sentence {number}" for number in range(around)] * 2
    assert (report.records, report.rejected) == (2 * around, 1)
    assert report.bad[0].line == around + 1
    assert reason in report.bad[0].reason


def test_json_that_only_looks_odd_is_kept(write, report):
    odd = ["5", "true", "[laughs]", "{sic}", "", f"a{NUL}b", "x" * 1_000_000, "\U0001f600", 'sentence1": 5', "-"]
    path = write("a.jsonl", b"\n\n  \n".join(map(record, odd)))
    assert table(path, PAIR, report)["sentence1"].to_list() == odd
    assert report.rejected == 0


def test_raw_control_characters_in_json_strings_are_kept(write, report):
    path = write("a.jsonl", b'{"text": "a\x00b\tc"}\n{"text": "d"}\n')
    assert texts(path, report) == [f"a{NUL}b\tc", "d"]


def test_labels_are_strings_on_both_ways(write, report):
    good = [record("a", "b", label) for label in ("-", -1, 0, 1.0, None)]
    path = write("a.jsonl", b"\n".join(good))
    fast = table(path, PAIR, report)["gold_label"].to_list()
    slow = table(write("b.jsonl", b"\n".join([*good, b"{"])), PAIR, report)["gold_label"].to_list()
    assert fast == slow == ["-", "-1", "0", "1", None]


def test_repeated_key_keeps_its_first_value_on_both_ways(write, report):
    twice = b'{"text": "first", "text": "second"}'
    assert texts(write("a.jsonl", twice), report) == texts(write("b.jsonl", twice + b"\n{"), report) == ["first"]


# CSV and TSV


def test_csv_with_quotes_commas_and_line_breaks(write, report):
    content = 'sentence1,gold_label,sentence2\n"a, ""quoted""",neutral,"two\nlines"\nplain,,x\n'
    frame = table(write("a.csv", content), PAIR, report)
    assert frame.rows() == [('a, "quoted"', "two\nlines", "neutral"), ("plain", "x", "")]
    assert report.rejected == 0


@pytest.mark.parametrize("block_bytes", [1, 7, 40, 1 << 20])
def test_csv_blocks_end_between_records(write, report, block_bytes):
    rows = [(f'text {number}, "q"\nsecond line', f"b{number}") for number in range(30)]
    quoted = [",".join('"' + field.replace('"', '""') + '"' for field in row) for row in rows]
    path = write("a.csv", "a,b\n" + "\n".join(quoted) + "\n")
    frame = pl.concat(csv.read(path, Columns(("a", "b")), report, block_bytes, quoted=True))
    assert frame.rows() == rows


def test_bad_csv_records_are_counted_with_their_lines(write, report):
    path = write("a.csv", b'a,text\n1,one\n2\n3,"two\nlines"\n4,x,y\n\n5,bad \xff\n6,six 6" pipe\n')
    assert texts(path, report) == ["one", "two\nlines", 'six 6" pipe']
    assert where(report) == [(3, "1 fields, expected 2"), (6, "3 fields, expected 2"), (8, "not UTF-8")]


def test_quote_that_is_never_closed_costs_every_line_it_swallows(write, report):
    path = write("a.csv", 'a,text\n1,one\n2,"open\n' + "3,x\n" * 2000)
    assert texts(path, report) == ["one"]
    assert report.rejected == 2001
    assert "quote were never closed" in report.bad[0].reason


def test_csv_keeps_nul_and_a_megabyte(write, report):
    content = f"text,b\na{NUL}b,1\n{'x' * 1_000_000},2\nshort,\n"  # the empty last field takes the slow path
    assert texts(write("a.csv", content), report) == [f"a{NUL}b", "x" * 1_000_000, "short"]


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_a_carriage_return_within_a_line_is_text_on_both_ways(write, report, suffix):
    content = "text,b\none\rtwo,1\r\nthree,2\r\n".replace(",", "," if suffix == "csv" else "\t")
    fast = texts(write(f"a.{suffix}", content), report)
    slow = texts(write(f"b.{suffix}", content + "bad\n"), report)
    assert fast == slow == ["one\rtwo", "three"]
    assert where(report) == [(4, "1 fields, expected 2")]


def test_quotes_mean_nothing_in_tsv(write, report):
    path = write("a.tsv", 'a\ttext\n1\t"open\n2\tclosed"\n')
    assert texts(path, report) == ['"open', 'closed"']


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty; expected a header"),
        (b"\na,b\n", "line 1 is blank"),
        (b"a,b\r1,2\r3,4\r", "the header has a carriage return within"),
        (b"a,a\n1,2\n", "names a column twice"),
        (b"\xff\n", "header is not UTF-8"),
    ],
)
def test_csv_without_a_usable_header(write, report, content, message):
    with pytest.raises(SourceError, match=message):
        columns_of(write("a.csv", content), "csv")


# All formats


@pytest.mark.parametrize("suffix", ["gz", "zst", "GZ", "Zst"])
@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.csv"])
def test_compressed(write, report, name, suffix):
    content = {"a.txt": "one\ntwo\n", "a.jsonl": '{"text": "one"}\n{"text": "two"}\n', "a.csv": "text\none\ntwo\n"}[
        name
    ].encode()
    packed = gzip.compress(content) if suffix.lower() == "gz" else pa.compress(content, codec="zstd", asbytes=True)
    assert texts(write(f"{name}.{suffix}", packed), report) == ["one", "two"]


def test_damaged_gzip(write, report):
    packed = gzip.compress(b"one\ntwo\n" * 1000)
    with pytest.raises(SourceError, match="damaged gzip data"):
        texts(write("a.txt.gz", packed[:-20]), report)
    with pytest.raises(SourceError, match="damaged gzip data"):
        texts(write("b.txt.gz", b"no gzip"), report)


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.csv", "a.parquet"])
def test_missing_file(tmp_path, report, name):
    path = str(tmp_path / name)
    with pytest.raises(SourceError, match=r"no such file; correct its path") as caught:
        texts(path, report)
    assert path in str(caught.value)


def test_missing_column_names_what_is_there_and_what_is_near(write, report):
    path = write("a.jsonl", record("a"))
    with pytest.raises(SourceError) as caught:
        texts(path, report, "sentence")
    assert "column 'sentence' is missing; found 'gold_label', 'sentence1', 'sentence2', expected 'sentence'" in str(
        caught.value
    )
    assert "did you mean 'sentence" in str(caught.value)
    assert str(caught.value).endswith(f"name the right columns {NAME_COLUMNS}")


def test_unknown_suffix(tmp_path):
    with pytest.raises(
        SourceError, match=r"no known format; known are \.txt.* in a recipe set `ingest.sources\[\].format`"
    ):
        format_of("corpus.docx")


def test_no_json_object_at_all(write, report):
    with pytest.raises(SourceError, match="no line is a JSON object"):
        texts(write("a.jsonl", "one\ntwo\n"), report)


def test_too_much_that_cannot_be_read(write, report):
    path = write("a.jsonl", b"\n".join([record("a")] * 97 + [b"{"] * 3))
    table(path, PAIR, report)
    report.check(max_bad_share=0.03)
    with pytest.raises(SourceError) as caught:
        report.check(max_bad_share=0.029)
    assert "3 of 100 records (3.00%) cannot be read, more than max_bad_share = 2.90% allows" in str(caught.value)
    assert f"{path}, line 98: not JSON" in str(caught.value)
    assert NAME_COLUMNS in str(caught.value)
    assert "or in a recipe give `ingest.sources[].format` or raise `ingest.max_bad_share`" in str(caught.value)


def test_only_the_first_examples_are_kept(write, report):
    texts(write("a.txt", b"ok\n" + b"\xff\n" * 50), report)
    assert report.rejected == 50
    assert [record.line for record in report.bad] == list(range(2, 22))


def test_empty_source(write, report):
    assert list(lines.read(write("a.txt", b""), Columns(("text",)), report)) == []
    with pytest.raises(SourceError, match="test contains no record"):
        report.check(0.01)


@pytest.mark.parametrize("block_bytes", [1, 3, 50, 1000])
def test_blocks_are_whole_lines_numbered_from_one(write, report, block_bytes):
    content = b"".join(b"%d %s\n" % (number, b"x" * (number % 13)) for number in range(1, 60)) + b"last"
    path = write("a.txt", content)
    blocks = list(line_blocks(path, report, block_bytes))
    assert b"".join(block.content for block in blocks) == content
    assert all(int(block.content.split()[0]) == block.first_line for block in blocks[:-1])
    assert report.bytes_read == report.bytes_total == len(content)


@pytest.mark.parametrize("block_bytes", [60, 500, 1 << 20])
def test_json_is_the_same_in_any_blocks(write, block_bytes):
    rows = [
        b"{" if number % 50 == 7 else record(f"s {number}", "5" if number % 9 == 0 else "t") for number in range(400)
    ]
    path, whole, cut = write("a.jsonl", b"\n".join(rows)), ReadReport("test"), ReadReport("test")
    assert pl.concat(jsonl.read(path, PAIR, cut, block_bytes)).equals(pl.concat(jsonl.read(path, PAIR, whole)))
    assert where(cut) == where(whole)
    assert (cut.records, cut.rejected) == (392, 8)
