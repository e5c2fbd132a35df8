"""The Hub's clients against the stand-in: every answer that a Hub can give, and the line that a user reads for it."""

import errno
import itertools
import threading
import time

import polars as pl
import pytest

from bsl.storage.errors import HubError, HubSilentError, SourceError
from bsl.storage.hub import faults, repositories
from bsl.storage.readers.read_report import ReadReport
from bsl.storage.sources.model_sources import resolve_model
from bsl.storage.sources.read import read_scored_pairs, read_source, source_columns
from bsl.storage.sources.sources import ResolvedSource, SourceSpec, resolve_source
from tests.hub.client import offline
from tests.hub.repositories import parquet

PAIRS = pl.DataFrame({"sentence1": ["a", "b"], "sentence2": ["c", "d"], "score": [1.0, 2.5]})
SET, MODEL = "someone/pairs", "someone/encoder"


def pairs(hub, **changes) -> str:
    return hub.add(
        "datasets",
        SET,
        {"README.md": b"", "data/train-0.parquet": parquet(PAIRS), "data/test-0.parquet": parquet(PAIRS)},
        **changes,
    )


def encoder(hub, **changes) -> str:
    files = {"config.json": b"{}", "model.safetensors": b"tensors" * 1000, "README.md": b"", "flax_model.msgpack": b"1"}
    return hub.add("models", MODEL, files, **changes)


def read(source: ResolvedSource) -> pl.DataFrame:
    return read_scored_pairs(source, ReadReport("pairs"))


def load() -> list[str]:
    return sorted(path.name for path in resolve_model(MODEL).folder.iterdir() if path.is_file())


def test_hub_table_is_downloaded_once_and_then_read_offline(hub, monkeypatch):
    commit = pairs(hub)
    source = resolve_source(SourceSpec(dataset=SET))
    assert source.digest == f"{SET}@{commit}/train"
    assert read(source).drop("subset").equals(PAIRS)
    assert source_columns(source) == ("sentence1", "sentence2", "score")
    assert len(hub.requests("GET /cdn")) == 1  # both splits have the same bytes
    asked = len(hub.log)
    assert read(resolve_source(SourceSpec(dataset=SET, revision=commit))).height == 2
    assert len(hub.log) == asked
    hub.stop()
    assert read(resolve_source(SourceSpec(dataset=SET))).height == 2
    offline(monkeypatch)
    assert read(resolve_source(SourceSpec(dataset=SET))).height == 2


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "jsonl.gz", "csv.gz"])
def test_hub_tables_in_csv_tsv_and_jsonl_are_read(hub, suffix):
    import gzip

    tab = "\t" if suffix.startswith("tsv") else ","
    content = (PAIRS.write_ndjson() if "jsonl" in suffix else PAIRS.write_csv(separator=tab)).encode()
    hub.add("datasets", SET, {f"train.{suffix}": gzip.compress(content) if suffix.endswith("gz") else content})
    assert read(resolve_source(SourceSpec(dataset=SET))).drop("subset").equals(PAIRS)


def test_hub_plain_text_file_is_read(hub):
    hub.add("datasets", SET, {"sentences.txt": b"A dog.\nA cat.\n"})
    frames = read_source(resolve_source(SourceSpec(dataset=SET)), ReadReport("text"), 0.0)
    assert pl.concat(frames).to_series().to_list() == ["A dog.", "A cat."]


def test_hub_model_files_are_downloaded_on_first_access(hub):
    commit = encoder(hub)
    found = resolve_model(MODEL)
    assert found.identity == f"{MODEL}@{commit}"
    assert hub.requests("resolve|cdn") == []
    assert sorted(path.name for path in found.described.iterdir()) == ["README.md", "config.json", "model.safetensors"]
    assert load() == ["README.md", "config.json", "model.safetensors"]
    before = len(hub.log)
    load()
    resolve_model(MODEL, commit)
    assert hub.requests()[before:] == [f"GET /api/models/{MODEL}/revision/main?blobs=true"]


ANSWERS = [
    (
        {"status": 503},
        HubSilentError,
        r"the Hub returned an error \(503\)\. Run again later, .*set HF_HOME to a cache that contains it",
    ),
    ({"status": 500}, HubSilentError, r"the Hub returned an error \(500\)"),
    (
        {"status": 429, "headers": {"Retry-After": "90"}},
        HubSilentError,
        r"too many requests to the Hub \(429\)\. Wait 90 s and run",
    ),
    ({"status": 418}, HubError, r"the Hub refused the request \(418"),
    ({"cut": 20}, HubSilentError, r"the request to the Hub failed"),
    ({"seconds": 3.0}, HubSilentError, r"the request to the Hub failed|does not answer"),
]


@pytest.mark.parametrize("name", [SET, MODEL])
@pytest.mark.parametrize(("fault", "kind", "line"), ANSWERS)
def test_each_hub_error_has_a_specific_message(hub, monkeypatch, name, fault, kind, line):
    monkeypatch.setattr(repositories, "SECONDS_TO_ANSWER", 0.3)
    pairs(hub), encoder(hub)
    hub.fail("/api/", **fault)
    with pytest.raises(SourceError, match=line) as caught:
        resolve_source(SourceSpec(dataset=name)) if name == SET else resolve_model(name)
    assert type(caught.value) is kind
    assert str(caught.value).startswith(f"{name}@main: ")


@pytest.mark.parametrize(
    ("where", "fault"),
    [
        *itertools.product(
            ("api/", "cdn/", "HEAD .*resolve"), ({"status": 503}, {"cut": 9}, {"status": 429}, {"seconds": 3.0})
        ),
        ("cdn/", {"corrupt": True}),  # only file contents have a digest
    ],
)
def test_temporary_hub_error_is_retried(hub, monkeypatch, fault, where):
    monkeypatch.setattr(repositories, "SECONDS_TO_ANSWER", 0.5)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DOWNLOAD_TIMEOUT", 0.5)
    pairs(hub), encoder(hub)
    broken = hub.fail(where, **fault, times=1)
    assert read(resolve_source(SourceSpec(dataset=SET))).height == 2
    assert broken.times == 0
    hub.fail(where, **fault, times=1)
    assert "model.safetensors" in load()


def test_corrupt_download_is_rejected_and_not_cached(hub):
    encoder(hub)
    fault = hub.fail("cdn/", corrupt=True)
    with pytest.raises(
        HubError, match=r"the download of model\.safetensors differs from the Hub's listing\. Check whether a proxy"
    ):
        load()
    hub.faults.remove(fault)
    assert "model.safetensors" in load()


@pytest.mark.parametrize("name", [SET, MODEL])
def test_full_disk_is_named_and_not_retried(hub, monkeypatch, name):
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    pairs(hub), encoder(hub)
    monkeypatch.setattr("huggingface_hub.snapshot_download", full)
    monkeypatch.setattr("bsl.storage.hub.faults.time.sleep", pytest.fail)
    with pytest.raises(HubError, match=r"cannot write to the Hub's cache: the disk is full\. Free space") as caught:
        read(resolve_source(SourceSpec(dataset=name))) if name == SET else load()
    assert type(caught.value) is HubError


def test_missing_gated_and_bad_commit_errors_are_distinct(hub):
    with pytest.raises(
        HubError, match=r"no such repository, or it is private \(401\)\. Correct the name, or set HF_TOKEN"
    ):
        resolve_model("nobody/nothing")
    encoder(hub)
    with pytest.raises(HubError, match=r"has no such commit, tag or branch \(404\)"):
        resolve_model(MODEL, "f" * 40)
    with pytest.raises(HubError, match=r"has no such commit, tag or branch \(404\)"):
        resolve_model(MODEL, "v9")
    pairs(hub, gated=True)
    with pytest.raises(
        HubError, match=rf"is gated \(401\)\. Accept its terms at {hub.url}/datasets/{SET} and set HF_TOKEN"
    ):
        read(resolve_source(SourceSpec(dataset=SET)))


def test_unreachable_hub_fails_fast_for_every_dataset(hub):
    hub.stop()
    started = time.monotonic()
    for name in ("one/set", "two/sets", "three/sets"):
        with pytest.raises(HubSilentError, match=rf"{name}@main: the Hub does not answer \(.*refused.*\)\. Run again"):
            resolve_source(SourceSpec(dataset=name))
    assert time.monotonic() - started < 1.0


def test_hub_that_restarts_within_a_second_is_retried(hub, monkeypatch):
    monkeypatch.setattr(faults, "SECONDS_TO_CONNECT", (0.4, 0.4))
    pairs(hub)
    hub.stop()
    hub.faults.clear()
    restart = threading.Timer(0.1, hub.start, [hub.port])
    restart.start()
    assert read(resolve_source(SourceSpec(dataset=SET))).height == 2
    restart.join()


def test_rate_limited_requests_are_retried_after_random_delays(hub, monkeypatch):
    slept = []
    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setattr(faults, "SECONDS_BETWEEN_TRIES", (8.0,) * 20)
    for headers, least in (({}, 4.0), ({"Retry-After": "30"}, 34.0)):
        hub.fail("api/", status=429, headers=headers, times=20)
        with pytest.raises(HubError, match="no such repository"):
            resolve_source(SourceSpec(dataset="no/set"))
        waits = [seconds for seconds in slept if seconds]  # the stand-in's delays are 0
        assert len(set(waits)) == len(waits) > 10
        assert [seconds for seconds in waits if not least <= seconds <= least + 8.0] == []
        slept.clear()


def test_cached_branch_commit_is_used_when_hub_is_down(hub, caplog):
    first = encoder(hub)
    load()
    hub.stop()
    assert resolve_model(MODEL).identity == f"{MODEL}@{first}"
    assert f"{MODEL}@main: using commit {first} from the cache" in caplog.text


def test_missing_hub_split_or_config_error_lists_available_names(hub):
    card = {
        "configs": [
            {"config_name": name, "data_files": [{"split": "test", "path": f"{name}/test-*"}]} for name in ("a", "b")
        ]
    }
    hub.add("datasets", SET, {"a/test-0.parquet": parquet(PAIRS), "b/test-0.parquet": parquet(PAIRS)}, card=card)
    with pytest.raises(HubError, match=r"Config name is missing.*\['a', 'b'\].*\. Set `hub_config`"):
        read(resolve_source(SourceSpec(dataset=SET, split="test")))
    assert read(resolve_source(SourceSpec(dataset=SET, split="test", hub_config="b"))).height == 2
    with pytest.raises(HubError, match=r"b/dev: the Hub's repository has no split 'dev', expected one of test"):
        read(resolve_source(SourceSpec(dataset=SET, split="dev", hub_config="b")))


def test_snapshot_from_huggingface_hub_is_reused_offline(hub, monkeypatch):
    from huggingface_hub import snapshot_download

    commit = encoder(hub)
    snapshot_download(MODEL)
    hub.stop()
    offline(monkeypatch)
    assert resolve_model(MODEL).identity == f"{MODEL}@{commit}"
    assert (resolve_model(MODEL, commit).folder / "model.safetensors").is_file()
    with pytest.raises(SourceError, match=r"HF_HUB_OFFLINE forbids requests to the Hub\. Did you mean") as caught:
        resolve_model("someone/encodre")
    assert f"Did you mean '{MODEL}'? Unset HF_HUB_OFFLINE, check the name, name a folder" in str(caught.value)
    with pytest.raises(SourceError, match=r"forbids requests to the Hub\. Unset HF_HUB_OFFLINE, check the name"):
        resolve_model("nobody/at-all")


def test_invalid_repository_name_is_rejected_without_a_request(hub, monkeypatch):
    monkeypatch.setattr(faults.time, "sleep", pytest.fail)
    with pytest.raises(HubError, match="someone/a--b@main: not a valid repository name"):
        resolve_source(SourceSpec(dataset="someone/a--b"))
    assert hub.requests("") == []
