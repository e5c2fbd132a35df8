"""URLs as users write them: home folders, and credentials that are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from storage.filesystem.urls import shown, without_password
from storage.sources.model_sources import resolve_model
from storage.sources.sources import SourceSpec
from tasks.stage.run_context import RunContext
from tests.every import every
from tests.tiny_encoder import write_tiny

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_tilde_in_path_settings_expands_to_the_home_folder(home: Path) -> None:
    site = RunContext(store="~/store", mirror="~/mirror", cache="~/cache")
    assert (site.store, site.mirror, site.cache) == tuple(str(home / name) for name in ("store", "mirror", "cache"))
    assert SourceSpec(path="~/own.txt").path == str(home / "own.txt")
    assert RunContext(store="memory://~/store").store == "memory://~/store"


def test_model_path_and_mirror_accept_a_tilde(home: Path) -> None:
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
        f"https://host/x?a=1&access_token={SECRET}#b",
    ]
)
def test_url_with_credentials_is_rejected_and_redacted(address: str) -> None:
    with pytest.raises(
        ValueError, match=r"contains a password, token or signature, .* expected an address without one\. Set"
    ) as why:
        SourceSpec(path=address)
    assert SECRET not in str(why.value)
    assert SECRET not in shown(f"{address} and {address}: no such file")


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
    ]
)
def test_url_that_resembles_credentials_is_accepted_unchanged(address: str) -> None:
    assert without_password(address) == shown(address) == address
