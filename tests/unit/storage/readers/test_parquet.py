"""Parquet and Arrow files: types, batches, damage."""

import decimal
import gzip
import io
from functools import partial
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bsl.storage.errors import SourceError
from bsl.storage.readers import parquet
from bsl.storage.readers.columns import Columns
from bsl.storage.readers.formats import columns_of, format_of, read_table
from tests.reading import table, texts

TEXT = pa.array(["a", "b"])
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


def test_parquet_frames_have_at_most_batch_rows_rows(path, report, monkeypatch):
    pl.DataFrame({"text": [str(number) for number in range(1000)]}).write_parquet(path)
    monkeypatch.setattr(parquet, "BATCH_ROWS", 300)
    frames = list(parquet.read(path, Columns(("text",)), report, "Parquet"))
    assert [frame.height for frame in frames] == [300, 300, 300, 100]


def test_text_column_must_be_unique_and_of_strings(path, report):
    for columns, names, why in (
        ([pa.array([1, 2])], ["text"], "column 'text' has type int64, expected strings"),
        ([TEXT, TEXT], ["text", "text"], "2 columns have the name 'text'"),
    ):
        pq.write_table(pa.Table.from_arrays(columns, names=names), path)
        with pytest.raises(SourceError, match=why):
            texts(path, report)


@pytest.mark.parametrize("odd", ODD)
def test_column_of_unsupported_type_raises_source_error(path, report, odd):
    pq.write_table(pa.table({"": TEXT, "label": ODD[odd]}), path)
    assert texts(path, report, "") == ["a", "b"]
    for wanted in (Columns(("",), ("label",)), Columns(("label",))):
        with pytest.raises(SourceError, match=r"column 'label' has type .*, expected strings"):
            table(path, wanted, report)
    carried = Columns((), carried=("label",))
    if "label" in columns_of(path, "parquet", carried=True):  # in UTC, if Polars has not the time zone
        assert table(path, carried, report)["label"].dt.timestamp("us").to_list() == [1, 2]
        assert odd == "+05:30"
    else:
        with pytest.raises(SourceError, match=r"column 'label' has type .*, expected strings, numbers, dates"):
            table(path, carried, report)


WRITERS = {
    "parquet": pl.DataFrame.write_parquet,
    "file": pl.DataFrame.write_ipc,
    "stream": pl.DataFrame.write_ipc_stream,
}


def packed(frame, form):
    buffer = io.BytesIO()
    WRITERS[form](frame, buffer)
    return buffer.getvalue()


@pytest.mark.parametrize("form", WRITERS)
def test_error_names_the_file_whichever_byte_is_damaged(write, report, form):
    """Some bytes may change without an error; no rows of Parquet are lost without one."""
    content, said = packed(pl.DataFrame({"text": ["a b c d e f g h", None, "é"] * 5, "label": range(15)}), form), []
    path = write("b.parquet" if form == "parquet" else "b.arrow", content)
    for place in range(0, len(content), 2):
        write(path, content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        try:
            frames = list(read_table(path, format_of(path), Columns(("text",), ("label",)), report))
            assert sum(frame.height for frame in frames) == 15 or form != "parquet"
        except SourceError as error:
            said.append(str(error))
    assert said
    assert [line for line in said if path not in line] == []


NUMBERS = pl.DataFrame({"text": [f"{number}" * 9 for number in range(5000)]})
ARROW, STREAM = (packed(pl.DataFrame({"text": ["a"]}), form) for form in ("file", "stream"))
DAMAGED = {
    "no Parquet": ("a.parquet", b"PAR1 this is not it"),
    "zeros in Parquet": ("a.parquet", packed(NUMBERS, "parquet")[:200] + bytes(200) + packed(NUMBERS, "parquet")[400:]),
    "empty": ("a.arrow", b""),
    "no stream": ("a.arrow", b"no stream"),
    "no schema": ("a.arrow", b"\xff\xff\xff\xff\x10\x00\x00\x00"),
    "a cut file": ("a.arrow", ARROW[:-9]),
    "a stream cut after a batch": ("a.arrow", STREAM[:-8]),
    "two streams in one file": ("a.arrow", STREAM * 2),
}


@pytest.mark.parametrize(("name", "content"), DAMAGED.values(), ids=DAMAGED)
def test_damaged_or_truncated_file_raises_source_error(write, report, name, content):
    with pytest.raises(SourceError, match=rf"{name} is not a complete (Arrow|Parquet) file"):
        texts(write(name, content), report)


FORMS = {
    "a.parquet": ("parquet", bytes),
    "a.arrow": ("file", bytes),
    "stream.arrow": ("stream", bytes),
    "a.arrow.gz": ("file", gzip.compress),
    "stream.arrow.zst": ("stream", partial(pa.compress, codec="zstd", asbytes=True)),
}


@pytest.mark.parametrize("name", FORMS)
def test_null_text_is_an_empty_cell_in_every_form(write, report, name):
    form, compressed = FORMS[name]
    frame = pl.DataFrame({"text": ["a", None, "c"], "label": [0, 1, -1]})
    path = write(name, compressed(packed(frame, form)))
    assert table(path, Columns(("text",), ("label",)), report).rows() == [("a", 0), ("", 1), ("c", -1)]
    assert (report.records, report.rejected, report.empty) == (3, 0, 1)
    assert report.bytes_read == Path(path).stat().st_size
    assert columns_of(path, format_of(path)) == ("text", "label")
