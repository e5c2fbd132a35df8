"""A mirror behind a URL or on an object store gives the same content and keys as a local folder."""

import contextlib
import io
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
    table = io.BytesIO()
    pl.DataFrame({"premise": ["a"], "hypothesis": ["b"], "label": [0]}).write_parquet(table)
    model = {"config.json": b"{}", "model.safetensors": WEIGHTS, "1_Pooling/config.json": b"{}"}
    files = {f"models/{MODEL}/{name}": content for name, content in model.items()}
    return write_files(tmp_path / "mirror", {**files, "snli/train.parquet": table.getvalue()})


@pytest.fixture
def in_memory(folder):
    fs = fsspec.filesystem("memory")
    fs.store.clear()
    fs.put(f"{folder}/", "/mirror/", recursive=True)
    yield "memory://mirror"
    fs.store.clear()


@pytest.fixture(params=["file", "memory"])
def elsewhere(request, folder):
    return f"file://{folder}" if request.param == "file" else request.getfixturevalue("in_memory")


def changed(elsewhere, name):
    fs, root = fsspec.url_to_fs(f"{elsewhere}/{name}")
    fs.pipe_file(root, b'{"changed": true}')


def test_remote_and_local_mirrors_give_the_same_digests_and_copy_model_files_on_first_access(
    folder, elsewhere, tmp_path
):
    source, cache = resolve_source(SourceSpec(dataset="snli"), elsewhere), tmp_path / "cache"
    assert source.digest == resolve_source(SourceSpec(dataset="snli"), folder).digest
    found = resolve_model(MODEL, COMMIT, elsewhere, cache)
    assert found.identity == resolve_model(f"{folder}/models/{MODEL}").identity
    assert isinstance(found.location, Path if elsewhere.startswith("file") else MirroredModel)
    assert not cache.exists()
    assert (found.described / "1_Pooling" / "config.json").read_bytes() == b"{}"
    assert (found.folder / "model.safetensors").read_bytes() == WEIGHTS
    if elsewhere.startswith("memory"):
        assert found.location.check()
        changed(elsewhere, f"models/{MODEL}/model.safetensors")  # copied files are not fetched again
        assert (found.folder / "model.safetensors").read_bytes() == WEIGHTS


def test_model_file_changed_before_its_copy_raises_source_error(in_memory, tmp_path):
    found = resolve_model(MODEL, COMMIT, in_memory, tmp_path / "cache")
    changed(in_memory, f"models/{MODEL}/config.json")
    with pytest.raises(SourceError, match="has changed since it was found"):
        _ = found.folder
    assert not list(tmp_path.glob("cache/models/*/config.json"))


def test_remote_folder_without_config_json_is_not_a_model(elsewhere):
    for name in ("config.json", "1_Pooling/config.json"):
        fs, root = fsspec.url_to_fs(f"{elsewhere}/models/{MODEL}/{name}")
        fs.rm(root)
    with pytest.raises(SourceError, match=r"is not a model: it contains .*model\.safetensors, expected config\.json"):
        resolve_model(MODEL, mirror=elsewhere)


@pytest.mark.parametrize("name", ["../../../../evil/.bashrc", "a/../../evil", "/evil", "a//evil", "./evil"])
def test_mirror_keys_cannot_write_outside_the_cache_folder(in_memory, tmp_path, name):
    """An object store accepts any key, and the keys of a mirror are not trusted."""
    objects, model = fsspec.filesystem("memory").store, f"/mirror/models/{MODEL}"
    objects[f"{model}/{name}"] = objects[f"{model}/config.json"]
    is_hidden = any(part.startswith(".") for part in name.split("/"))  # hidden objects are not part of a model
    with contextlib.nullcontext() if is_hidden else pytest.raises(SourceError, match="leads out of the folder"):
        _ = resolve_model(MODEL, None, in_memory, tmp_path / "cache").folder
    assert not [path for path in tmp_path.rglob("*") if "evil" in path.name or path.name == ".bashrc"]
