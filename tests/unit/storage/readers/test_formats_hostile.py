"""Hostile source files: hidden values, packed bytes, and silent errors of the format libraries."""

import decimal
import gzip
import json
import zlib

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage.errors import SourceError
from storage.readers import lines
from storage.readers.blocks import line_blocks
from storage.readers.columns import Columns
from storage.readers.formats import columns_of
from storage.readers.read_report import ReadReport
from storage.sources.sources import SourceSpec, resolve_source
from tests.reading import table, texts, where

# JSON lines


@pytest.mark.parametrize("value", ["5", "-1e3", "true", "[1]", '["a\\nb"]', '{"a": "b\\nc"}', "[]"])
@pytest.mark.parametrize("spelled", ["sätze", "s\\u00e4tze", "s\\u00E4\\u0074ze"])
@pytest.mark.parametrize("around", [3, 2000])
def test_no_name_hides_a_value_that_is_no_string(write, report, value, spelled, around):
    good = [f'{{"{spelled}": "Satz {number}"}}' for number in range(around)]
    bad = f'{{"{spelled}": {value}}}'
    path = write("a.jsonl", "\n".join([*good, bad, *good]))
    assert len(texts(path, report, "sätze")) == 2 * around
    assert [line for line, _ in where(report)] == [around + 1]


def test_strings_that_look_like_values_stay_strings(write, report):
    rows = ["7", "true", "[a]", "[a\nb]", "{}"]
    path = write("a.jsonl", "\n".join(json.dumps({"sätze": row}) for row in rows))
    assert texts(path, report, "sätze") == rows


def test_a_line_is_joined_once(write, report):
    """Joined again at every read, this line would be copied for minutes."""
    path = write("a.txt", b"x" * (8 << 20))
    blocks = list(line_blocks(path, report, 64))
    assert [len(block.content) for block in blocks] == [8 << 20]


def test_long_lines_alone_tell_the_columns(write, report):
    line = json.dumps({"text": "x" * (6 << 20)})
    path = write("a.jsonl", f"{line}\n{line}\n{line}\n" + '{"late": 1}\n')
    assert columns_of(path, "jsonl") == ("text",)


# Compressed bytes


PACKED = {
    "gzip": gzip.compress(b'{"text": "a"}\n'),
    "zlib": zlib.compress(b'{"text": "a"}\n'),
    "Zstandard": pa.compress(b'{"text": "a"}\n', codec="zstd", asbytes=True),
    "zip": b"PK\x03\x04 a spreadsheet",
}


@pytest.mark.parametrize("suffix", ["txt", "csv", "tsv", "jsonl"])
@pytest.mark.parametrize("kind", PACKED)
def test_packed_bytes_under_another_name_are_refused(write, report, kind, suffix):
    path = write(f"a.{suffix}", PACKED[kind])
    with pytest.raises(SourceError, match=rf"holds {kind}.*end its name in \.gz or \.zst"):
        texts(path, report)


def test_what_is_packed_twice_is_refused(write, report):
    with pytest.raises(SourceError, match="holds gzip data"):
        texts(write("a.txt.gz", gzip.compress(PACKED["gzip"])), report)


def test_a_bomb_is_refused_in_bounded_memory(write, report):
    with pytest.raises(SourceError, match="longer than 64 MiB"):
        texts(write("a.txt.gz", gzip.compress(b"\0" * (96 << 20), 1)), report)


@pytest.mark.parametrize("start", ["x^2", "x\x01 y", "x^"])
def test_a_line_that_looks_packed_is_read_as_it_is(write, report, start):
    """Polars takes `x^` for zlib's magic bytes, and returns `2` for `x^2`."""
    assert texts(write("a.txt", f"{start}\nb\n"), report) == [start, "b"]
    assert texts(write("a.csv", f"text,n\n{start},1\nb,2\n"), ReadReport("csv")) == [start, "b"]
    block = f"aaa\n{start}\nb\n"
    frames = lines.read(write("b.txt", block), Columns(("text",)), ReadReport("blocks"), block_bytes=4)
    assert pl.concat(frames)["text"].to_list() == ["aaa", start, "b"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("suffix", ["txt", "csv", "jsonl"])
def test_utf_16_is_refused(write, report, encoding, suffix):
    content = '{"text": "A cat sits on the mat."}\n'.encode(encoding)
    with pytest.raises(SourceError, match="save the file as UTF-8"):
        texts(write(f"a.{suffix}", content), report)


# CSV


def test_text_after_a_closing_quote_costs_its_record_alone(write, report):
    content = 'id,text\n1,one\n2,"two" and "half\n3,three\n4,"four ""4"", ""x"""\n5,five\n'
    assert texts(write("a.csv", content), report) == ["one", "three", 'four "4", "x"', "five"]
    assert where(report) == [(3, "text follows a closing quote")]


def test_a_stray_quote_does_not_merge_records(write, report):
    content = 'id,text\n1,5" nails\n2,"6"" nails"\n3,a "b" c\n4,d\n'
    assert texts(write("a.csv", content), report) == ['5" nails', '6" nails', 'a "b" c', "d"]
    assert report.rejected == 0


def test_a_quote_that_is_never_closed_is_no_record(write, report):
    """In the last column, such a record would have the right number of fields."""
    assert texts(write("a.csv", 'id,text\n1,one\n2,"two\n3,three\n'), report) == ["one"]
    assert where(report) == [(3, "one record spans 2 lines, as if a quote were never closed")]
    assert report.rejected == 2


@pytest.mark.parametrize("header", ['id,"text\n1,one\n', '"id" x,text\n1,one\n'])
def test_a_header_with_a_stray_quote_is_refused(write, report, header):
    with pytest.raises(SourceError, match="the header cannot be read"):
        texts(write("a.csv", header), report)


# Parquet


def parquet(path: str, columns: dict[str, pa.Array] | pa.Table) -> str:
    pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(columns), path)
    return path


TEXT = pa.array(["a", "b"])
ODD = {
    "decimal256": pa.array([decimal.Decimal(1), decimal.Decimal(2)], pa.decimal256(50, 2)),
    "+05:30": pa.array([1, 2], pa.timestamp("us", "+05:30")),
    "struct": pa.array([{"x": 1}, {"x": 2}]),
    "list": pa.array([[1], [2]]),
    "binary": pa.array([b"\xff", b"b"]),
}


@pytest.mark.parametrize("odd", ODD)
def test_a_type_that_is_neither_text_nor_number_is_named(tmp_path, report, odd):
    path = parquet(str(tmp_path / "a.parquet"), {"text": TEXT, "label": ODD[odd]})
    assert table(path, Columns(("text",)), report)["text"].to_list() == ["a", "b"]
    for wanted in (Columns(("text",), ("label",)), Columns(("label",))):
        with pytest.raises(SourceError, match=r"column 'label' holds .*, expected strings"):
            table(path, wanted, report)


def test_two_columns_of_one_name_are_refused(tmp_path, report):
    path = parquet(str(tmp_path / "a.parquet"), pa.Table.from_arrays([TEXT, TEXT], names=["text", "text"]))
    with pytest.raises(SourceError, match="2 columns are called 'text'"):
        texts(path, report)


def test_a_column_may_have_no_name(tmp_path, report):
    path = parquet(str(tmp_path / "a.parquet"), pa.Table.from_arrays([TEXT, TEXT], names=["text", ""]))
    assert texts(path, report, "") == ["a", "b"]


def test_any_byte_of_a_parquet_file_may_be_damaged(tmp_path, write, report):
    path = parquet(str(tmp_path / "a.parquet"), {"text": TEXT, "label": pa.array([1, 2])})
    content = (tmp_path / "a.parquet").read_bytes()
    for place in range(0, len(content), 3):
        damaged = bytearray(content)
        damaged[place] ^= 0xFF
        path = write("b.parquet", bytes(damaged))
        try:
            table(path, Columns(("text",), ("label",)), report)
        except SourceError as error:
            assert path in str(error)  # noqa: PT017 - some bytes may change without anybody's noticing


# Sources that a user may name


@pytest.mark.parametrize(
    "fields",
    [
        {"path": ""},
        {"dataset": ""},
        {"path": "a.txt", "columns": ("text", "text")},
        {"path": "a.txt", "columns": ("text",), "label": "text"},
        {"path": "a\0b"},
        {"path": "ftp://user:planted-secret@host/a.txt"},
    ],
    ids=str,
)
def test_a_source_that_makes_no_sense_is_refused(fields):
    with pytest.raises(ValueError, match="1 validation error") as refusal:
        SourceSpec(**fields)
    assert "planted-secret" not in str(refusal.value)


@pytest.mark.parametrize("path", ["x" * 5000, "/" + "y/" * 3000, "no/such\nfile"])
def test_a_path_that_no_disk_takes_is_a_clear_error(path):
    with pytest.raises(SourceError):
        resolve_source(SourceSpec(path=path))
