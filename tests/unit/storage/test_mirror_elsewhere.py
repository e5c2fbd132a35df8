"""A mirror on an object store, or spelled as a URL, gives what the same folder gives, by the same keys."""

import json

import fsspec
import polars as pl
import pytest

from storage.datasets.registry import DATASETS
from storage.errors import SourceError
from storage.filesystem.digests import file_sha256
from storage.sources.model_sources import resolve_model
from storage.sources.sources import SourceSpec, resolve_source
from tasks.diagnostics.inspection import look_at_model
from tasks.stage.run_context import RunContext

COMMIT, OTHER = "4" * 40, "5" * 40
SNLI = f"stanfordnlp/snli@{DATASETS['snli'].revision}/train"
WEIGHTS = b"weights" * 200_000
MODEL = "someone/encoder"


@pytest.fixture
def folder(tmp_path):
    """A mirror with a table and a model, both the Hub's."""
    folder = tmp_path / "mirror"
    files = {
        f"models/{MODEL}/config.json": b"{}",
        f"models/{MODEL}/model.safetensors": WEIGHTS,
        f"models/{MODEL}/1_Pooling/config.json": b"{}",
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    (folder / "snli").mkdir()
    table = pl.DataFrame({"premise": ["a"], "hypothesis": ["b"], "label": [0]})
    table.write_parquet(folder / "snli" / "train.parquet")
    origins = dict.fromkeys(files, f"{MODEL}@{COMMIT}") | {"snli/train.parquet": SNLI}
    entries = {name: {"origin": origin, "sha256": file_sha256(folder / name)} for name, origin in origins.items()}
    (folder / "mirror.json").write_text(json.dumps(entries))
    return folder


@pytest.fixture(params=["file", "memory"])
def elsewhere(request, folder, tmp_path):
    """The same mirror behind a URL."""
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


def without_record(folder, elsewhere):
    """The mirror as somebody copied it by hand."""
    fs, root = fsspec.url_to_fs(elsewhere)
    (folder / "mirror.json").unlink()
    if "memory" in elsewhere:
        fs.rm(f"{root}/mirror.json")


def test_a_mirror_elsewhere_gives_the_keys_of_the_hub(folder, elsewhere, tmp_path):
    source = resolve_source(SourceSpec(dataset="snli"), elsewhere)
    assert source.digest == resolve_source(SourceSpec(dataset="snli"), str(folder)).digest
    assert source.digest == SNLI
    found = resolve_model(MODEL, COMMIT, elsewhere, tmp_path / "cache")
    assert found.identity == resolve_model(MODEL, COMMIT, str(folder)).identity == f"{MODEL}@{COMMIT}"
    with pytest.raises(SourceError, match=f"is {MODEL}@{COMMIT}, expected revision {OTHER}"):
        resolve_model(MODEL, OTHER, elsewhere)
    assert not (tmp_path / "cache").exists()


def test_the_files_of_a_model_come_when_its_folder_is_asked_for(folder, elsewhere, tmp_path):
    cache = tmp_path / "cache"
    found = resolve_model(MODEL, COMMIT, elsewhere, cache)
    assert (found.described / "1_Pooling" / "config.json").read_bytes() == b"{}"
    copied = [path.name for path in cache.rglob("*") if path.is_file()]
    assert sorted(copied) == ([] if elsewhere.startswith("file") else ["config.json", "config.json"])
    assert (found.folder / "model.safetensors").read_bytes() == WEIGHTS
    if elsewhere.startswith("memory"):
        changed(elsewhere, f"models/{MODEL}/model.safetensors")  # what was copied is not asked for again
        assert (resolve_model(MODEL, COMMIT, elsewhere, cache).folder / "model.safetensors").read_bytes() == WEIGHTS


def test_a_file_that_is_not_as_it_was_written_is_refused(elsewhere, tmp_path):
    changed(elsewhere, f"models/{MODEL}/config.json")
    with pytest.raises(SourceError, match=r"config\.json .*sha256"):
        _ = resolve_model(MODEL, COMMIT, elsewhere, tmp_path / "cache").folder
    assert not list(tmp_path.glob("cache/models/*/config.json"))
    fs, root = fsspec.url_to_fs(f"{elsewhere}/models/{MODEL}/config.json")
    fs.rm(root)
    with pytest.raises(SourceError, match=r"config\.json is missing, which mirror\.json lists .*; delete"):
        resolve_model(MODEL, COMMIT, elsewhere)


def test_without_a_record_a_model_is_known_by_its_content(folder, elsewhere, tmp_path):
    without_record(folder, elsewhere)
    found = resolve_model(MODEL, mirror=elsewhere, cache=tmp_path / "cache")
    assert found.identity == resolve_model(str(folder / "models" / MODEL)).identity
    assert (found.folder / "model.safetensors").read_bytes() == WEIGHTS
    for name in ("config.json", "1_Pooling/config.json"):
        fs, root = fsspec.url_to_fs(f"{elsewhere}/models/{MODEL}/{name}")
        fs.rm(root)
    with pytest.raises(SourceError, match=r"is no model: it holds .*model\.safetensors, expected config\.json"):
        resolve_model(MODEL, mirror=elsewhere)


@pytest.mark.parametrize("recorded", [True, False], ids=["by its record", "by its objects"])
@pytest.mark.parametrize("name", ["../../../../evil/.bashrc", "a/../../evil", "/evil", "a//evil", "./evil"])
def test_no_name_of_a_mirror_leads_out_of_the_copy(folder, tmp_path, name, recorded):
    """An object store takes any key, and whoever fills the mirror chooses it."""
    fs = fsspec.filesystem("memory")
    fs.store.clear()
    key = f"models/{MODEL}/{name}"
    fs.put(f"{folder}/", "/mirror/", recursive=True)
    fs.store[f"/mirror/{key}"] = fs.store[f"/mirror/models/{MODEL}/config.json"]
    record = json.loads((folder / "mirror.json").read_bytes())
    record[key] = record[f"models/{MODEL}/config.json"]
    fs.pipe_file("/mirror/mirror.json", json.dumps(record if recorded else {}).encode())
    if recorded or not any(part.startswith(".") for part in name.split("/")):  # hidden objects are none of a model
        with pytest.raises(SourceError, match="leads out of the folder"):
            _ = resolve_model(MODEL, None, "memory://mirror", tmp_path / "cache").folder
    else:
        _ = resolve_model(MODEL, None, "memory://mirror", tmp_path / "cache").folder
    fs.store.clear()
    assert not list(tmp_path.rglob("*evil*"))
    assert not list(tmp_path.rglob(".bashrc"))


def test_light_weights_say_how_a_model_works(folder, tmp_path):
    """Such as those of WeightedLayerPooling and WordWeights; `bsl doctor` copies no others."""
    (folder / "mirror.json").unlink()
    (folder / "models" / MODEL / "1_Pooling" / "model.safetensors").write_bytes(b"few")
    fs = fsspec.filesystem("memory")
    fs.put(f"{folder}/", "/mirror/", recursive=True)
    found = resolve_model(MODEL, None, "memory://mirror", tmp_path / "cache")
    assert (found.described / "1_Pooling" / "model.safetensors").read_bytes() == b"few"
    assert not (found.described / "model.safetensors").exists()
    assert look_at_model(RunContext(mirror="memory://mirror", cache=str(tmp_path / "cache")), MODEL, None).endswith(
        "on the mirror"
    )
    assert not (found.described / "model.safetensors").exists()
    assert found.mirrored is not None
    assert not found.mirrored.check()
    assert found.folder
    assert found.mirrored.check()
    fs.rm("/mirror", recursive=True)
