"""Embedded assets are found by name and verified by their manifests."""

import pytest

from bsl.storage.assets.catalog import AssetManifest, embedded_manifest
from bsl.storage.assets.embedded import embedded_names, embedded_path
from bsl.storage.errors import AssetError
from bsl.storage.filesystem.digests import describe_files


@pytest.fixture
def sample(tmp_path):
    folder = tmp_path / "sample"
    folder.mkdir()
    (folder / "text.txt").write_text("A dog runs.\n")
    known = {"kind": "labelled-pairs", "description": "One sentence.", "licence": "CC0", "sources": [], "seed": 0}
    manifest = AssetManifest(name="sample", **known, files=describe_files(folder))
    (folder / "manifest.json").write_text(manifest.model_dump_json())
    return folder


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("text.txt", "Two cats sleep.\n", r"text\.txt: sha256 .* from the manifest"),
        ("text.txt", None, r"text\.txt: missing"),
        ("manifest.json", '{"name": "sample"}', "not an asset manifest"),
    ],
)
def test_damaged_asset_is_rejected_after_a_successful_read(sample, name, content, why):
    assert embedded_path("sample", sample.parent) == sample
    (sample / name).unlink() if content is None else (sample / name).write_text(content)
    with pytest.raises(AssetError, match=why):
        embedded_path("sample", sample.parent)


def test_asset_digest_depends_on_content_and_not_on_path(sample, tmp_path):
    before = embedded_manifest("sample", tmp_path).digest
    (tmp_path / "elsewhere").mkdir()
    sample.rename(tmp_path / "elsewhere" / "sample")
    assert embedded_manifest("sample", tmp_path / "elsewhere").digest == before


def test_every_embedded_asset_matches_its_manifest():
    assert embedded_names()
    for name in embedded_names():
        assert embedded_path(name).is_dir()
