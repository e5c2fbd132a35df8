"""Addresses as people write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from storage.sources import SourceSpec
from storage.weights import resolve_model
from tasks.site import Site
from tests.tiny_encoder import write_tiny

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_a_tilde_is_the_home_folder_wherever_an_address_is_given(home: Path) -> None:
    site = Site(store="~/store", mirror="~/mirror", cache="~/cache")
    assert (site.store, site.mirror, site.cache) == tuple(str(home / name) for name in ("store", "mirror", "cache"))
    assert SourceSpec(path="~/own.txt").path == str(home / "own.txt")
    assert Site(store="memory://~/store").store == "memory://~/store"


def test_a_model_is_found_at_home_and_in_a_mirror_there(home: Path) -> None:
    write_tiny(home / "mirror" / "models" / "me" / "mine")
    found = resolve_model("~/mirror/models/me/mine")
    assert found.place is not None
    assert resolve_model("me/mine", mirror=Site(mirror="~/mirror").mirror).identity == found.identity
