"""Parquet and Arrow files: types, batches, damage."""

import decimal
import gzip
import io
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bsl.storage.errors import SourceError
from bsl.storage.readers import parquet
from bsl.storage.readers.columns import Columns
from bsl.storage.readers.formats import columns_of
from tests.reading import table, texts

TEXT = pa.array(["a", "b"])
PACK = {"": bytes, ".gz": gzip.compress, ".zst": pa.Codec("zstd").compress}
ODD = {
    "decimal256": pa.array([decimal.Decimal(1), decimal.Decimal(2)], pa.decimal256(50, 2)),
    "+05:30": pa.array([1, 2], pa.timestamp("us", "+05:30")),
    "struct": pa.array([{"x": 1}, {"x": 2}]),
    "list": pa.array([[1], [2]]),
    "binary": pa.array([b"\xff", b"b"]),
}


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "a.parquet")


def test_null_text_is_an_empty_cell(path, report):
    pl.DataFrame({"text": ["a", None, "c"], "label": [0, 1, -1]}).write_parquet(path)
    assert table(path, Columns(("text",), ("label",)), report).rows() == [("a", 0), ("", 1), ("c", -1)]
    assert (report.records, report.rejected, report.empty) == (3, 0, 1)
    assert report.bytes_read == Path(path).stat().st_size


def test_parquet_frames_have_at_most_batch_rows_rows(path, report, monkeypatch):
    pl.DataFrame({"text": [str(number) for number in range(1000)]}).write_parquet(path)
    monkeypatch.setattr(parquet, "BATCH_ROWS", 300)
    frames = list(parquet.read(path, Columns(("text",)), report, "Parquet"))
    assert [frame.height for frame in frames] == [300, 300, 300, 100]


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"text": pa.array([1, 2])}, "column 'text' has type int64, expected strings"),
        ([TEXT, TEXT], "2 columns have the name 'text'"),
    ],
)
def test_text_column_must_be_unique_and_of_strings(path, report, columns, why):
    made = pa.table(columns) if isinstance(columns, dict) else pa.Table.from_arrays(columns, names=["text", "text"])
    pq.write_table(made, path)
    with pytest.raises(SourceError, match=why):
        texts(path, report)


def test_column_with_an_empty_name_is_readable(path, report):
    pq.write_table(pa.Table.from_arrays([TEXT, TEXT], names=["text", ""]), path)
    assert texts(path, report, "") == ["a", "b"]


@pytest.mark.parametrize("odd", ODD)
def test_column_of_unsupported_type_raises_source_error(path, report, odd):
    pq.write_table(pa.table({"text": TEXT, "label": ODD[odd]}), path)
    assert texts(path, report) == ["a", "b"]
    for wanted in (Columns(("text",), ("label",)), Columns(("label",))):
        with pytest.raises(SourceError, match=r"column 'label' has type .*, expected strings"):
            table(path, wanted, report)


def test_damaged_parquet_file_raises_source_error(path, write, report):
    with pytest.raises(SourceError, match=r"is not a complete Parquet file"):
        texts(write("b.parquet", b"PAR1 this is not it"), report)
    pl.DataFrame({"text": [f"{number}" * 9 for number in range(5000)]}).write_parquet(path)
    with Path(path).open("rb+") as file:
        file.seek(200)
        file.write(bytes(200))
    with pytest.raises(SourceError, match="is not a complete Parquet file"):
        texts(path, report)


def test_parquet_error_names_the_file_whichever_byte_is_damaged(tmp_path, path, write, report):
    pq.write_table(pa.table({"text": TEXT, "label": pa.array([1, 2])}), path)
    content = (tmp_path / "a.parquet").read_bytes()
    for place in range(0, len(content), 3):
        damaged = bytearray(content)
        damaged[place] ^= 0xFF
        broken = write("b.parquet", bytes(damaged))
        try:
            table(broken, Columns(("text",), ("label",)), report)
        except SourceError as error:
            assert broken in str(error)  # noqa: PT017 - some bytes may change without anybody's noticing


def test_arrow_string_that_is_not_utf8_raises_source_error(tmp_path, report):
    broken = pa.RecordBatch.from_arrays([pa.array([b"ok", b"\xff"]).view(pa.string())], names=["text"])
    with pa.ipc.new_stream(tmp_path / "a.arrow", broken.schema) as stream:
        stream.write_batch(broken)
    with pytest.raises(SourceError, match=r"a\.arrow: a value is damaged or not UTF-8"):
        texts(str(tmp_path / "a.arrow"), report)


@pytest.mark.parametrize("form", ["stream", "file"])
def test_arrow_error_names_the_file_whichever_byte_is_damaged(write, report, form):
    buffer = io.BytesIO()
    frame = pl.DataFrame({"text": ["a b c d e f g h", None, "é"] * 5, "label": range(15)})
    frame.write_ipc(buffer) if form == "file" else frame.write_ipc_stream(buffer)
    for place in range(len(buffer.getvalue())):
        damaged = bytearray(buffer.getvalue())
        damaged[place] ^= 0xFF
        broken = write("b.arrow", bytes(damaged))
        try:
            table(broken, Columns(("text",), ("label",)), report)
        except SourceError as error:
            assert broken in str(error)  # noqa: PT017 - as above


FILE = io.BytesIO()
pl.DataFrame({"text": ["a"]}).write_ipc(FILE)


@pytest.mark.parametrize("content", [b"", b"no stream", b"\xff\xff\xff\xff\x10\x00\x00\x00", FILE.getvalue()[:-9]])
def test_damaged_or_truncated_arrow_file_raises_source_error(write, content):
    with pytest.raises(SourceError, match=r"a\.arrow is not a complete Arrow file"):
        columns_of(write("a.arrow", content), "arrow")


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
@pytest.mark.parametrize("form", ["stream", "file"])
def test_arrow_file_and_stream_formats_are_read(tmp_path, report, form, suffix):
    buffer = io.BytesIO()
    frame = pl.DataFrame({"text": ["a", None, "c"], "label": [0, 1, -1]})
    frame.write_ipc(buffer) if form == "file" else frame.write_ipc_stream(buffer)
    path = tmp_path / f"a.arrow{suffix}"
    path.write_bytes(PACK[suffix](buffer.getvalue()))
    assert table(str(path), Columns(("text",), ("label",)), report).rows() == [("a", 0), ("", 1), ("c", -1)]
    assert report.empty == 1
    assert columns_of(str(path), "arrow") == ("text", "label")
