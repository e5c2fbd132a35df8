"""The Hub's clients against the stand-in: every answer that a Hub can give, and the line that a user reads for it."""

import errno
import gzip
import itertools
import os
import re
import shutil
import threading
import time
from pathlib import Path

import polars as pl
import pytest
from huggingface_hub import constants, snapshot_download

from bsl.storage.errors import HubError, HubSilentError, SourceError
from bsl.storage.hub import faults, repositories
from bsl.storage.readers.read_report import ReadReport
from bsl.storage.sources.model_sources import resolve_model
from bsl.storage.sources.read import read_scored_pairs, source_columns
from bsl.storage.sources.sources import SourceSpec, resolve_source
from tests.hub.client import offline
from tests.hub.repositories import parquet
from tests.servers import ROOT

PAIRS = pl.DataFrame({"sentence1": ["a", "b"], "sentence2": ["c", "d"], "score": [1.0, 2.5]})
SET, MODEL = "someone/pairs", "someone/encoder"
ENCODER = {"config.json": b"{}", "model.safetensors": b"tensors" * 1000, "tokenizer.json": b"{}"}


def pairs(hub, **changes):
    table = parquet(PAIRS)
    files = {"README.md": b"", "data/train-0.parquet": table, "data/test-0.parquet": table}
    return hub.add("datasets", SET, files, **changes)


def encoder(hub, **changes):
    return hub.add("models", MODEL, {**ENCODER, "flax_model.msgpack": b"1"}, **changes)


def read(source):
    return read_scored_pairs(source, ReadReport("pairs"))


def load(name=MODEL, revision=None):
    if name == SET:
        read(resolve_source(SourceSpec(dataset=name, revision=revision)))
        return []
    return sorted(path.name for path in resolve_model(name, revision).folder.iterdir() if path.is_file())


DOCS = (ROOT / "docs" / "hub.md").read_text()
DOCUMENTED = dict(re.findall(r"^\| (.+?) \| (.+) \|$", DOCS, re.MULTILINE))
NO_REPOSITORY, NO_FILE = ({"X-Error-Code": code} for code in ("RepoNotFound", "EntryNotFound"))
ANY, FILES = "/api/", "cdn"
FAULTS = {
    # Row of the table in docs/hub.md → requests that fail, how, kind of the error
    "401, no such repository or a private one": (ANY, {"status": 401, "headers": NO_REPOSITORY}, HubError),
    "401, a token that is wrong or has expired": (
        ANY, {"status": 401, "headers": {"X-Error-Message": 'User Access Token "mine" is expired'}}, HubError),
    "401, gated": ("", {}, HubError),
    "403, gated, a token without access": ("", {}, HubError),
    "403, a repository that the Hub disabled": (
        ANY, {"status": 403, "headers": {"X-Error-Message": "Access to this resource is disabled."}}, HubError),
    "404, no such repository": (ANY, {"status": 404, "headers": NO_REPOSITORY}, HubError),
    "404, a listed file is gone": ("tokenizer.json", {"status": 404, "headers": NO_FILE}, HubError),
    "404, a bad commit": ("", {}, HubError),
    "418, anything else": (ANY, {"status": 418}, HubError),
    "429 with Retry-After: 90": (ANY, {"status": 429, "headers": {"Retry-After": "90"}}, HubSilentError),
    "429 without": (ANY, {"status": 429}, HubSilentError),
    "500": (ANY, {"status": 500}, HubSilentError),
    "503": (ANY, {"status": 503}, HubSilentError),
    "slow: no byte within the time limit": (ANY, {"seconds": 3.0}, HubSilentError),
    "cut off after 20 bytes": (FILES, {"cut": 20}, HubSilentError),
    "corrupt: other bytes than listed": (FILES, {"corrupt": True}, HubSilentError),
    "a redirect loop": (FILES, {"status": 302, "headers": {"Location": "/cdn/loop"}}, HubSilentError),
    "a dead endpoint": ("", {}, HubSilentError),
}  # fmt: skip


@pytest.mark.parametrize(
    ("what", "name"),
    # Files of datasets are read like those of models.
    [
        (what, name)
        for what, (where, *_) in FAULTS.items()
        for name in (MODEL, SET)
        if name == MODEL or where in (ANY, "")
    ],
)
def test_each_hub_error_has_the_documented_message(hub, monkeypatch, what, name):
    monkeypatch.setattr(repositories, "SECONDS_TO_ANSWER", 0.3)
    where, fault, kind = FAULTS[what]
    pairs(hub, gated="gated" in what), encoder(hub, gated="gated" in what)
    if where:
        hub.fail(where, **fault)
    if "token" in what:
        monkeypatch.setenv("HF_TOKEN", "hf_" + "x" * 34)
    if what == "a dead endpoint":
        hub.stop()
    with pytest.raises(SourceError) as caught:
        load(name, "f" * 40 if what == "404, a bad commit" else None)
    assert type(caught.value) is kind
    assert documented(str(caught.value)) == DOCUMENTED[what]
    if where == FILES:  # nothing wrong is cached
        hub.faults.clear()
        assert load() == sorted(ENCODER)


def documented(line):
    line = line.replace(SET, MODEL).replace("/api/datasets/", "/api/models/").replace("/datasets/", "/")
    line = re.sub(r"http://(127\.0\.0\.1|localhost):\d+", "http://‹endpoint›", line)
    line = re.sub(r"(?<=\d: )(the stand-in was .*|User Access .*|Access to .*?)(?=\)\. )", "‹its message›", line)
    line = re.sub(rf"({MODEL}@)[0-9a-f]{{12}}(?![0-9a-f])", r"\1‹commit›", line)
    if found := re.fullmatch(r"(.* Run again later, )((?:check|(?:or )?set HF_HOME).*)\.", line):
        assert f"*{found[2]}*" in " ".join(DOCS.split())
        line = f"{found[1]}… \\*."
    return line


def test_gated_dataset_is_named_although_its_readme_is_in_the_cache(hub):
    """Regression: `datasets` drops the Hub's answer."""
    commit = pairs(hub)
    snapshot_download(SET, repo_type="dataset", allow_patterns="README.md")
    pairs(hub, gated=True)
    with pytest.raises(HubError, match=rf"{SET}@{commit[:12]} is gated \(401\)\. Accept its terms"):
        load(SET)


def test_hub_table_is_downloaded_once_and_then_read_offline(hub, monkeypatch):
    commit = pairs(hub)
    source = resolve_source(SourceSpec(dataset=SET))
    assert source.digest == f"{SET}@{commit}/train"
    assert read(source).drop("subset").equals(PAIRS)
    assert source_columns(source) == ("sentence1", "sentence2", "score")
    assert len(hub.requests("GET /cdn")) == 1  # both splits have the same bytes
    asked = len(hub.log)
    load(SET, commit)
    assert len(hub.log) == asked
    hub.stop()
    load(SET)
    offline(monkeypatch)
    load(SET)


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "jsonl.gz", "csv.gz"])
def test_hub_tables_in_csv_tsv_and_jsonl_are_read(hub, suffix):
    tab = "\t" if suffix.startswith("tsv") else ","
    content = (PAIRS.write_ndjson() if "jsonl" in suffix else PAIRS.write_csv(separator=tab)).encode()
    hub.add("datasets", SET, {f"train.{suffix}": gzip.compress(content) if suffix.endswith("gz") else content})
    assert read(resolve_source(SourceSpec(dataset=SET))).drop("subset").equals(PAIRS)


def test_hub_model_files_are_downloaded_on_first_access(hub, caplog):
    commit = encoder(hub)
    found = resolve_model(MODEL)
    assert found.identity == f"{MODEL}@{commit}"
    assert hub.requests("resolve|cdn") == []
    assert sorted(path.name for path in found.described.iterdir()) == load() == sorted(ENCODER)
    before = len(hub.log)
    load()
    resolve_model(MODEL, commit)
    assert hub.requests()[before:] == [f"GET /api/models/{MODEL}/revision/main?blobs=true"]
    hub.stop()
    assert resolve_model(MODEL).identity == f"{MODEL}@{commit}"
    assert f"{MODEL}@main: using commit {commit} from the cache" in caplog.text


def test_complete_cache_that_cannot_be_written_is_read(hub):
    """A file in the place of the folder of branches stands for a read-only one, into which root can write."""
    commit = encoder(hub)
    names = load()
    (refs,) = {path.parent for path in Path(constants.HF_HUB_CACHE).rglob("refs/main")}
    shutil.rmtree(refs)
    refs.touch()
    assert resolve_model(MODEL).identity == f"{MODEL}@{commit}"
    assert load() == names
    (listings,) = Path(constants.HF_HUB_CACHE).rglob(".bsl")
    shutil.rmtree(listings)
    listings.touch()
    resolved = resolve_model(MODEL)
    hub.log.clear()
    assert resolved.folder.is_dir()
    assert len(hub.requests("/api/")) == 1  # for the names; none for the sizes


def test_missing_commit_is_refused_at_once_unless_the_hub_is_silent(hub, caplog):
    encoder(hub)
    with pytest.raises(HubError):
        resolve_model(MODEL, "f" * 40)
    assert not caplog.records
    hub.stop()
    assert resolve_model(MODEL, "f" * 40).identity == f"{MODEL}@{'f' * 40}"
    assert f"{MODEL} may not be available: " in caplog.text


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
    for name in (SET, MODEL):
        broken = hub.fail(where, **fault, times=1)
        load(name)
        assert broken.times == 0


@pytest.mark.parametrize("name", [SET, MODEL])
@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.ENOSPC, r"cannot write to the Hub's cache: the disk is full\. Free space"),
        (
            errno.EACCES,
            r"the Hub's cache cannot be used \(.*Permission denied.*\).* set HF_HOME to a folder of your own",
        ),
    ],
)
def test_cache_that_cannot_be_written_is_named_and_not_retried(hub, monkeypatch, name, number, message):
    """Regression: another user's cache was reported as a Hub that does not answer, after four tries."""

    def refused(*_, **__):
        raise OSError(number, os.strerror(number))

    pairs(hub), encoder(hub)
    monkeypatch.setattr("huggingface_hub.snapshot_download", refused)
    monkeypatch.setattr("bsl.storage.hub.faults.time.sleep", pytest.fail)
    with pytest.raises(HubError, match=message) as caught:
        load(name)
    assert type(caught.value) is HubError


def test_unreachable_hub_fails_fast_for_every_dataset(hub):
    hub.stop()
    started = time.monotonic()
    for name in ("one/set", "two/sets", "three/sets"):
        with pytest.raises(HubSilentError, match=f"{name}@main: the Hub does not answer"):
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


def test_missing_hub_split_or_config_error_lists_available_names(hub):
    files = {f"{name}/test-0.parquet": parquet(PAIRS) for name in ("a", "b")}
    configs = [{"config_name": name, "data_files": [{"split": "test", "path": f"{name}/*"}]} for name in ("a", "b")]
    hub.add("datasets", SET, files, card={"configs": configs})
    with pytest.raises(HubError, match=r"Config name is missing.*\['a', 'b'\].*\. Set `hub_config`"):
        read(resolve_source(SourceSpec(dataset=SET, split="test")))
    assert read(resolve_source(SourceSpec(dataset=SET, split="test", hub_config="b"))).height == 2
    with pytest.raises(HubError, match=r"b/dev: the Hub's repository has no split 'dev', expected one of test"):
        read(resolve_source(SourceSpec(dataset=SET, split="dev", hub_config="b")))


def test_snapshot_from_huggingface_hub_is_reused_offline(hub, monkeypatch):
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


@pytest.mark.parametrize(
    ("name", "command"), [(MODEL, "bsl mirror FOLDER model:NAME`"), (SET, "bsl mirror FOLDER NAME`")]
)
def test_missing_repository_gets_the_command_that_fetches_it(hub, monkeypatch, name, command):
    with monkeypatch.context() as context:
        offline(context)
        with pytest.raises(SourceError) as missing:
            load(name, "f" * 40)
    assert command in str(missing.value)
    hub.stop()
    with pytest.raises(HubSilentError) as silent:
        load(name, "f" * 40)
    assert command in str(silent.value)
    assert ("to skip datasets" in str(silent.value)) == (name == SET)


def test_invalid_repository_name_is_rejected_without_a_request(hub, monkeypatch):
    monkeypatch.setattr(faults.time, "sleep", pytest.fail)
    with pytest.raises(HubError, match="someone/a--b@main: not a valid repository name"):
        resolve_source(SourceSpec(dataset="someone/a--b"))
    assert hub.requests("") == []
