"""Parquet and Arrow files: types, batches, damage."""

import polars as pl
import pyarrow as pa
import pytest

from storage.errors import SourceError
from storage.readers import parquet
from storage.readers.columns import Columns
from tests.reading import table, texts, where


def test_parquet(write, report, tmp_path):
    pl.DataFrame({"text": ["a", None, "c"], "label": [0, 1, -1]}).write_parquet(tmp_path / "a.parquet")
    frame = table(str(tmp_path / "a.parquet"), Columns(("text",), ("label",)), report)
    assert frame.rows() == [("a", 0), ("c", -1)]
    assert where(report) == [(2, "column 'text' is null")]
    assert report.bytes_read == report.bytes_total > 0


def test_parquet_in_batches(report, tmp_path, monkeypatch):
    pl.DataFrame({"text": [str(number) for number in range(1000)]}).write_parquet(tmp_path / "a.parquet")
    monkeypatch.setattr(parquet, "BATCH_ROWS", 300)
    frames = list(parquet.read(str(tmp_path / "a.parquet"), Columns(("text",)), report))
    assert [frame.height for frame in frames] == [300, 300, 300, 100]


def test_parquet_texts_must_be_strings(report, tmp_path):
    pl.DataFrame({"text": [1, 2]}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(SourceError, match="column 'text' holds int64, expected strings"):
        texts(str(tmp_path / "a.parquet"), report)


def test_damaged_parquet(write, report, tmp_path):
    with pytest.raises(SourceError, match=r"is no whole Parquet file"):
        texts(write("a.parquet", b"PAR1 this is not it"), report)
    pl.DataFrame({"text": [f"{number}" * 9 for number in range(5000)]}).write_parquet(tmp_path / "b.parquet")
    content = bytearray((tmp_path / "b.parquet").read_bytes())
    content[200:400] = bytes(200)
    with pytest.raises(SourceError, match="is no whole Parquet file"):
        texts(write("c.parquet", bytes(content)), report)


def test_arrow_strings_must_be_utf8(report):
    broken = pa.RecordBatch.from_arrays(
        [pa.array([b"ok", b"\xff"]).cast(pa.binary()).view(pa.string())], names=["text"]
    )
    with pytest.raises(SourceError, match="not UTF-8"):
        parquet.checked_frame(broken, "hub", Columns(("text",)), report, first_row=1)
