"""Tables that `datasets` prepared are read without the Hub, completely or not at all, with every text of a file."""

import gzip

import datasets
import polars as pl
import pytest

from bsl.storage.errors import HubError, SourceError
from bsl.storage.hub.datasets import table_files
from bsl.storage.readers.formats import columns_of
from bsl.storage.readers.read_report import ReadReport
from bsl.storage.sources.read import read_source
from bsl.storage.sources.sources import SourceSpec, resolve_source
from tests.hub.client import offline
from tests.hub.repositories import parquet

SET = "Someone/MyTexts"


def sentences(**spec):
    source = resolve_source(SourceSpec(dataset=SET, **spec))
    frames = read_source(source, ReadReport("texts"), max_bad_share=0.0)
    return pl.concat(frames).to_series().to_list()


def publish(hub, *texts):
    return hub.add("datasets", SET, {"train.parquet": parquet(pl.DataFrame({"text": texts}))})


def test_dataset_prepared_by_load_dataset_is_read_offline(hub, monkeypatch):
    commit = publish(hub, "A dog.", "A cat.")
    datasets.load_dataset(SET, revision=commit, cache_dir=str(datasets.config.HF_DATASETS_CACHE))
    asked = len(hub.log)
    offline(monkeypatch)
    assert sentences(revision=commit) == ["A dog.", "A cat."]
    assert len(hub.log) == asked


def test_cached_dataset_of_another_commit_is_not_used(hub, monkeypatch):
    first = publish(hub, "Old.")
    assert sentences() == ["Old."]
    second = publish(hub, "New.")
    offline(monkeypatch)
    with pytest.raises(SourceError, match=f"{second} is not in the cache, and HF_HUB_OFFLINE forbids"):
        sentences(revision=second)
    assert sentences(revision=first) == ["Old."]


def test_prepared_dataset_with_empty_info_is_not_read(hub):
    commit = publish(hub, "A dog.")
    sentences()
    (info,) = datasets.config.HF_DATASETS_CACHE.rglob(f"{commit}/dataset_info.json")
    info.write_text("{}")
    hub.stop()
    with pytest.raises(HubError):
        sentences(revision=commit)


def test_hub_csv_preserves_texts_that_resemble_null(hub):
    texts = ["None", "N/A", "null", "12"]
    hub.add("datasets", SET, {"train.csv": "\n".join(["text,number", *(f"{text},1" for text in texts)]).encode()})
    assert sentences(columns=("text",)) == texts


def test_large_hub_table_is_read_in_bounded_frames(hub):
    texts = [f"sentence {row}" for row in range(150_000)]
    publish(hub, *texts)
    source = resolve_source(SourceSpec(dataset=SET))
    heights = [frame.height for frame in read_source(source, ReadReport("texts"), max_bad_share=0.0)]
    assert sum(heights) == 150_000
    assert 1 < len(heights) < 10


def test_list_columns_are_listed_but_not_readable(hub):
    frame = pl.DataFrame({"text": ["a b"], "tags": [["x"]], "number": [1]})
    hub.add("datasets", SET, {"train.parquet": parquet(frame)})
    source = resolve_source(SourceSpec(dataset=SET))
    assert source.hub is not None
    (path,) = table_files(source.hub)
    assert columns_of(path, "arrow") == ("text", "tags", "number")
    assert columns_of(path, "arrow", readable=True) == ("text", "number")


DAMAGED = {
    # The bytes of gzip contain the time, and all processes need the same names of tests.
    "parquet": ("train.parquet", b"no parquet", ".*[Pp]arquet"),
    "empty": ("train.jsonl", b"", "StopIteration"),
    "gzip": ("train.jsonl.gz", gzip.compress(b'{"text": "A dog."}')[:-9], "Compressed file ended before"),
}


@pytest.mark.parametrize(("name", "content", "reason"), DAMAGED.values(), ids=DAMAGED)
def test_damaged_hub_table_error_includes_the_cause(hub, monkeypatch, name, content, reason):
    monkeypatch.setattr("bsl.storage.hub.faults.time.sleep", pytest.fail)  # the next download would have the same bytes
    hub.add("datasets", SET, {name: content})
    with pytest.raises(HubError, match=rf"datasets cannot read the repository \({reason}.* set `path`") as caught:
        sentences()
    assert type(caught.value) is HubError


def test_hub_dataset_in_an_unsupported_format_raises_hub_error(hub):
    hub.add("datasets", SET, {"train/a.png": b"picture"})
    with pytest.raises(HubError, match=r"expected one of parquet, json, csv, text, arrow\. Convert them"):
        sentences()
