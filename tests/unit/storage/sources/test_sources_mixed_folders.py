"""A folder with files of several formats."""

import gzip

import polars as pl
import pytest

from storage.errors import SourceError
from storage.readers.read_report import ReadReport
from storage.sources.read import read_source
from storage.sources.sources import SourceSpec, resolve_source, resolve_sources


def test_a_folder_of_several_formats_is_a_source_of_each(tmp_path):
    (tmp_path / "b.txt").write_text("one\n")
    (tmp_path / "a.jsonl").write_text('{"text": "two"}\n')
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress(b'{"text": "three"}\n'))
    spec = SourceSpec(path=str(tmp_path), limit=5)
    found = resolve_sources(spec)
    assert [source.format for source in found] == ["jsonl", "txt"]
    assert {(source.name, source.limit) for source in found} == {("a", 5)}  # equal, so they share the limit
    read = [pl.concat(read_source(source, ReadReport("r"), max_bad_share=0.0)) for source in found]
    assert [table.to_series().to_list() for table in read] == [["two", "three"], ["one"]]
    with pytest.raises(SourceError, match=r"files of jsonl and txt, expected one format; .* a pattern with \*"):
        resolve_source(spec)
