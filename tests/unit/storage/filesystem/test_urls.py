"""URLs as users write them: home folders, and credentials that are refused."""

import json
import re
import time

import pytest

from bsl.storage.filesystem.secrets import PUBLIC_PATTERN, shown, without_password
from bsl.storage.sources.model_sources import resolve_model
from bsl.storage.sources.sources import SourceSpec
from bsl.tasks.stage.run_context import RunContext
from tests.every import every
from tests.tiny_encoder import write_tiny


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_tilde_in_path_settings_expands_to_the_home_folder(home):
    site = RunContext(store="~/store", mirror="~/mirror", cache="~/cache")
    assert (site.store, site.mirror, site.cache) == tuple(str(home / name) for name in ("store", "mirror", "cache"))
    assert SourceSpec(path="~/own.txt").path == str(home / "own.txt")
    assert RunContext(store="memory://~/store").store == "memory://~/store"
    assert RunContext.model_json_schema()["properties"]["store"]["pattern"] == PUBLIC_PATTERN


def test_model_path_and_mirror_accept_a_tilde(home):
    write_tiny(home / "mirror" / "models" / "me" / "mine")
    found = resolve_model("~/mirror/models/me/mine")
    assert found.folder.is_dir()
    assert resolve_model("me/mine", mirror=RunContext(mirror="~/mirror").mirror).identity == found.identity


SECRET = "planted"


@every(
    [
        f"ftp://user:{SECRET}@host/a",
        f"ftp://me@corp.org:{SECRET}@host/a",
        f"ftp://user:p@{SECRET}@host/a",
        f"s3://AKIA:ab/{SECRET}@bucket/x",
        f"filecache::ftp://u:{SECRET}@host/x",
        f"https://{SECRET}@host/x",
        f"https://host/x?sv=2024&sig={SECRET}",
        f"https://b.s3.amazonaws.com/x?X-Amz-Credential={SECRET}&X-Amz-Date=1&X-Amz-Signature={SECRET}",
        f"https://host/x?download=1&auth={SECRET}",
        f"https://host/x?{SECRET}",
        f"https://host/x#{SECRET}",
        f"s3://bucket/x#token={SECRET}",
        f"tcp://{SECRET}@host:8786",
        f"labels:http://user:{SECRET}@host/labels.csv",
        f"own:filecache::https://host/x?z={SECRET}",
        f"https://host/hf_abcdefghijklmnop{SECRET}/x.csv",
        f"https://host/eyJhbGciOiJIUzI1NiJ9.{SECRET}.abc/x.csv",
        f"https://host/d/1AbC2dEf3GhI4jKl5MnO6pQr7{SECRET}/export?format=csv",
    ]
)
def test_url_with_credentials_is_rejected_and_redacted(address):
    with pytest.raises(
        ValueError, match=r"contains a password, token or signature, .* expected an address without one\. (Set|Dask)"
    ) as why:
        SourceSpec(path=address)
    assert SECRET not in str(why.value)
    assert SECRET not in shown(f"{address} and {address}: no such file")
    assert re.search(PUBLIC_PATTERN, address) is None


@every(
    [
        "http://host:8080/people/me@home.txt",
        "http://[::1]:80/me@home.txt",
        "zip://a.csv::s3://bucket/me@home.zip",
        "sftp://me@host:22/x",
        "abfs://container@account.dfs.core.windows.net/x",
        "hf://datasets/some/one@main/x",
        "s3://bucket/a:b/c@2x.txt",
        "https://host/x?download=1",
        "own?token=1.txt",
        "s3://bucket/part-?.csv",
        "s3://bucket/run#1",
        "tcp://127.0.0.1:8786",
        "https://host/raw/0123456789abcdef0123456789abcdef01234567/x.csv?raw=true",
        "https://host/Experiments-2024-BERT-Base-Uncased-Run7/BookCorpusSentences2015Part1/x.csv",
        "x" * 3000,
        json.dumps(["s3://bucket/x.csv"] * 500, separators=(",", ":")),
    ]
)
def test_url_that_resembles_credentials_is_accepted_unchanged(address):
    assert without_password(address) == shown(address) == address
    assert re.search(PUBLIC_PATTERN, address)


@every(["://" * 20_000, f"https://{'a' * 100_000}", f"x://{'/' * 50_000}", "http://" * 15_000, f"x://{'a' * 1900}"])
def test_hiding_takes_no_time_on_long_texts(text):
    start = time.perf_counter()
    shown(text)
    assert time.perf_counter() - start < 1
