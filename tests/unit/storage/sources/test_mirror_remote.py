"""A mirror behind a URL or on an object store gives the same content and keys as a local folder."""

from pathlib import Path

import fsspec
import polars as pl
import pytest

from bsl.storage.errors import SourceError
from bsl.storage.sources.model_sources import MirroredModel, resolve_model
from bsl.storage.sources.sources import SourceSpec, resolve_source
from tests.toy_sets import write_files

COMMIT = "4" * 40
WEIGHTS = b"weights" * 200_000
MODEL = "someone/encoder"


@pytest.fixture
def folder(tmp_path):
    """Return a mirror with a table and a model."""
    folder = tmp_path / "mirror"
    files = {
        f"models/{MODEL}/config.json": b"{}",
        f"models/{MODEL}/model.safetensors": WEIGHTS,
        f"models/{MODEL}/1_Pooling/config.json": b"{}",
    }
    write_files(folder, files)
    (folder / "snli").mkdir()
    table = pl.DataFrame({"premise": ["a"], "hypothesis": ["b"], "label": [0]})
    table.write_parquet(folder / "snli" / "train.parquet")
    return folder


@pytest.fixture(params=["file", "memory"])
def elsewhere(request, folder, tmp_path):
    """Yield the URL of the same mirror."""
    if request.param == "file":
        yield f"file://{folder}"
        return
    fs = fsspec.filesystem("memory")
    fs.put(f"{folder}/", "/mirror/", recursive=True)
    yield "memory://mirror"
    fs.rm("/mirror", recursive=True)


def changed(elsewhere, name):
    fs, root = fsspec.url_to_fs(f"{elsewhere}/{name}")
    fs.pipe_file(root, b'{"changed": true}')


def test_remote_and_local_mirrors_give_the_same_digests(folder, elsewhere, tmp_path):
    source = resolve_source(SourceSpec(dataset="snli"), elsewhere)
    assert source.digest == resolve_source(SourceSpec(dataset="snli"), str(folder)).digest
    found = resolve_model(MODEL, COMMIT, elsewhere, tmp_path / "cache")
    assert found.identity == resolve_model(str(folder / "models" / MODEL)).identity
    assert not (tmp_path / "cache").exists()


def test_remote_model_files_are_copied_on_first_access(folder, elsewhere, tmp_path):
    cache = tmp_path / "cache"
    found = resolve_model(MODEL, COMMIT, elsewhere, cache)
    assert isinstance(found.location, Path if elsewhere.startswith("file") else MirroredModel)
    assert not cache.exists()
    assert (found.described / "1_Pooling" / "config.json").read_bytes() == b"{}"
    assert (found.folder / "model.safetensors").read_bytes() == WEIGHTS
    if elsewhere.startswith("memory"):
        assert found.location.check()
        changed(elsewhere, f"models/{MODEL}/model.safetensors")  # copied files are not fetched again
        assert (found.folder / "model.safetensors").read_bytes() == WEIGHTS


def test_model_file_changed_before_its_copy_raises_source_error(folder, tmp_path):
    fs = fsspec.filesystem("memory")
    fs.put(f"{folder}/", "/mirror/", recursive=True)
    found = resolve_model(MODEL, COMMIT, "memory://mirror", tmp_path / "cache")
    changed("memory://mirror", f"models/{MODEL}/config.json")
    with pytest.raises(SourceError, match="has changed since it was found"):
        _ = found.folder
    assert not list(tmp_path.glob("cache/models/*/config.json"))
    fs.rm("/mirror", recursive=True)


def test_remote_folder_without_config_json_is_not_a_model(elsewhere):
    for name in ("config.json", "1_Pooling/config.json"):
        fs, root = fsspec.url_to_fs(f"{elsewhere}/models/{MODEL}/{name}")
        fs.rm(root)
    with pytest.raises(SourceError, match=r"is not a model: it contains .*model\.safetensors, expected config\.json"):
        resolve_model(MODEL, mirror=elsewhere)


@pytest.mark.parametrize("name", ["../../../../evil/.bashrc", "a/../../evil", "/evil", "a//evil", "./evil"])
def test_mirror_keys_cannot_write_outside_the_cache_folder(folder, tmp_path, name):
    """An object store accepts any key, and the keys of a mirror are not trusted."""
    fs = fsspec.filesystem("memory")
    fs.store.clear()
    key = f"models/{MODEL}/{name}"
    fs.put(f"{folder}/", "/mirror/", recursive=True)
    fs.store[f"/mirror/{key}"] = fs.store[f"/mirror/models/{MODEL}/config.json"]
    if not any(part.startswith(".") for part in name.split("/")):  # hidden objects are not part of a model
        with pytest.raises(SourceError, match="leads out of the folder"):
            _ = resolve_model(MODEL, None, "memory://mirror", tmp_path / "cache").folder
    else:
        _ = resolve_model(MODEL, None, "memory://mirror", tmp_path / "cache").folder
    fs.store.clear()
    assert not list(tmp_path.rglob("*evil*"))
    assert not list(tmp_path.rglob(".bashrc"))
