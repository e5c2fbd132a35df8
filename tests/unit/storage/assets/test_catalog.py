"""Embedded assets are found by name and verified by their manifests."""

import json
import shutil
from pathlib import Path

import pytest

from storage.artifacts.manifest import describe_files
from storage.assets.catalog import AssetManifest, embedded_manifest
from storage.assets.embedded import embedded_names, embedded_path
from storage.errors import AssetError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "sample"
    folder.mkdir()
    (folder / "text.txt").write_text("A dog runs.\n")
    manifest = AssetManifest(
        name="sample",
        kind="labelled-pairs",
        description="One sentence.",
        licence="CC0",
        sources=[],
        seed=0,
        files=describe_files(folder),
    )
    (folder / "manifest.json").write_text(manifest.model_dump_json())
    return tmp_path


def test_an_intact_asset_is_found(root):
    assert embedded_names(root) == ["sample"]
    assert (embedded_path("sample", root) / "text.txt").read_text() == "A dog runs.\n"


def test_an_unknown_name_lists_the_known_ones(root):
    with pytest.raises(AssetError, match=r"'simple'\. Did you mean 'embedded:sample'\? Known assets: sample"):
        embedded_path("simple", root)


def test_a_changed_byte_is_noticed_also_after_a_good_read(root):
    embedded_path("sample", root)
    (root / "sample" / "text.txt").write_text("Two cats sleep.\n")
    with pytest.raises(AssetError, match=r"text\.txt: sha256 .* from the manifest"):
        embedded_path("sample", root)


def test_a_missing_file_is_noticed(root):
    (root / "sample" / "text.txt").unlink()
    with pytest.raises(AssetError, match=r"text\.txt: missing"):
        embedded_path("sample", root)


def test_a_broken_manifest_is_an_asset_error(root):
    (root / "sample" / "manifest.json").write_text(json.dumps({"name": "sample"}))
    with pytest.raises(AssetError, match="not an asset manifest"):
        embedded_path("sample", root)


def test_the_digest_follows_content_not_place(root, tmp_path):
    other = tmp_path / "elsewhere"
    shutil.copytree(root / "sample", other / "sample")
    assert embedded_manifest("sample", other).digest == embedded_manifest("sample", root).digest


def test_every_asset_of_the_package_is_intact():
    assert embedded_names()
    for name in embedded_names():
        assert embedded_path(name).is_dir()
