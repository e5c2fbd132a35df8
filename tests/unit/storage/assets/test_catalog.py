"""Embedded assets are found by name and verified by their manifests."""

import shutil

import pytest

from bsl.storage.assets.catalog import AssetManifest, embedded_manifest
from bsl.storage.assets.embedded import embedded_names, embedded_path
from bsl.storage.errors import AssetError
from bsl.storage.filesystem.digests import describe_files


@pytest.fixture
def root(tmp_path):
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


def test_unknown_asset_error_suggests_and_lists_known_assets(root):
    with pytest.raises(AssetError, match=r"'simple'\. Did you mean 'embedded:sample'\? Known assets: sample"):
        embedded_path("simple", root)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (
            lambda sample: (sample / "text.txt").write_text("Two cats sleep.\n"),
            r"text\.txt: sha256 .* from the manifest",
        ),
        (lambda sample: (sample / "text.txt").unlink(), r"text\.txt: missing"),
        (lambda sample: (sample / "manifest.json").write_text('{"name": "sample"}'), "not an asset manifest"),
    ],
    ids=["changed", "missing", "no manifest"],
)
def test_damaged_asset_is_rejected_after_a_successful_read(root, spoil, why):
    embedded_path("sample", root)
    spoil(root / "sample")
    with pytest.raises(AssetError, match=why):
        embedded_path("sample", root)


def test_asset_digest_depends_on_content_and_not_on_path(root, tmp_path):
    other = tmp_path / "elsewhere"
    shutil.copytree(root / "sample", other / "sample")
    assert embedded_manifest("sample", other).digest == embedded_manifest("sample", root).digest


def test_every_embedded_asset_matches_its_manifest():
    assert embedded_names()
    for name in embedded_names():
        assert embedded_path(name).is_dir()
