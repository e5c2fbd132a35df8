"""Undeclared datasets of the Hub are mirrored by id or by a recipe's name, with the same keys."""

import json
import shutil

import polars as pl
import pytest

from bsl.flows.cli.main import main
from bsl.storage.errors import SourceError
from bsl.storage.readers.read_report import ReadReport
from bsl.storage.sources.mirror import fill_cache
from bsl.storage.sources.model_sources import resolve_model
from bsl.storage.sources.read import read_source
from bsl.storage.sources.sources import SourceSpec, resolve_source
from tests.hub.client import offline, use
from tests.hub.repositories import parquet, publish

TALKS, NEWS = "someone/talks", "someone/news"


def sentences(spec):
    source = resolve_source(spec)
    read = pl.concat(read_source(source, ReadReport(source.name), max_bad_share=0.0))
    return read.to_series().to_list(), source.digest


@pytest.fixture
def sets(hub):
    """Add a table in parts with a column that is no text, and a dataset whose configurations are folders."""
    parts = [pl.DataFrame({"text": [text], "number": [number]}) for number, text in enumerate(("one", "two"))]
    hub.add("datasets", TALKS, {f"data/train-{number}.parquet": parquet(part) for number, part in enumerate(parts)})
    files = {f"{name}/train.jsonl": json.dumps({"text": name, "tags": ["a"]}).encode() for name in ("x", "y")}
    card = {"configs": [{"config_name": name, "data_dir": name} for name in ("x", "y")]}
    hub.add("datasets", NEWS, files, card=card)


def test_mirrored_hub_dataset_reads_offline_with_the_same_digest(sets, hub, tmp_path, monkeypatch):
    expected = sentences(SourceSpec(dataset=TALKS))
    folder = tmp_path / "mirror"
    assert list(fill_cache(folder, TALKS)) == [(expected[1], "written")]
    assert list(fill_cache(folder, f"{TALKS}/train")) == [(expected[1], "kept")]
    use(hub, tmp_path / "mirror", monkeypatch)
    offline(monkeypatch)
    hub.stop()
    assert sentences(SourceSpec(dataset=TALKS)) == expected == (["one", "two"], expected[1])


def test_mirror_command_downloads_sources_and_models_of_a_recipe(sets, hub, tmp_path, capsys, monkeypatch):
    publish(hub, [("someone/bert", None)])
    news = [{"dataset": NEWS, "hub_config": name} for name in ("x", "y")]
    settings = [f"ingest.sources={json.dumps(news)}", "encoder.model=someone/bert"]
    words = [part for setting in settings for part in ("--set", setting)]
    assert main(["mirror", str(tmp_path / "mirror"), "recipe:tiny", *words]) == 0
    out = capsys.readouterr().out
    assert "written  model:someone/bert@" in out
    assert f"on machines without the Hub: HF_HOME={tmp_path}/mirror HF_HUB_OFFLINE=1\n" in out
    use(hub, tmp_path / "mirror", monkeypatch)
    offline(monkeypatch)
    for entry in news:
        found, digest = sentences(SourceSpec(**entry))
        assert found == [entry["hub_config"]]
        assert f"written  {digest}\n" in out


def test_mirror_rejects_unknown_names_and_lists_the_valid_forms(hub, tmp_path):
    folder = tmp_path / "mirror"
    for name in ("snlli", "a/b/c/d", "../b", "a/b@c@d"):
        with pytest.raises(SourceError, match=r"unknown dataset .*, expected model:<hub id>, <hub id>.*snli"):
            list(fill_cache(folder, name))
    with pytest.raises(SourceError, match="the Hub has no such repository"):
        list(fill_cache(folder, "sts21/test"))


@pytest.mark.parametrize(
    ("where", "fault", "advice"),
    [
        (
            "/api/",
            {"status": 500},
            "error (500). Run this again later, or on a machine that reaches the Hub; fetched files",
        ),
        (
            "/api/",
            {"status": 429, "headers": {"Retry-After": "90"}},
            "(429). Wait 90 s and run again, or set HF_TOKEN.",
        ),
        (
            "cdn/",
            {"corrupt": True},
            "differs from the Hub's listing. Check whether a proxy changes downloads, run again",
        ),
    ],
)
def test_mirror_command_after_an_error_of_the_hub_says_when_to_run_it_again(
    hub, tmp_path, capsys, where, fault, advice
):
    publish(hub, [("someone/bert", None)])
    hub.fail(where, **fault)
    assert main(["mirror", str(tmp_path / "mirror"), "model:someone/bert"]) == 1
    assert advice in capsys.readouterr().err


def test_mirrored_model_of_which_a_file_was_copied_in_part_is_completed(hub, tmp_path, capsys, monkeypatch):
    publish(hub, [("someone/bert", None)])
    command = ["mirror", str(tmp_path / "mirror"), "model:someone/bert"]
    assert main(command) == 0
    (weights,) = (tmp_path / "mirror").rglob("model.safetensors")
    whole = weights.read_bytes()
    weights.resolve().write_bytes(whole[:1000])
    with monkeypatch.context() as patched:
        use(hub, tmp_path / "mirror", patched)
        offline(patched)
        incomplete = r"model\.safetensors in the cache is not complete, and HF_HUB_OFFLINE forbids"
        with pytest.raises(SourceError, match=incomplete):
            resolve_model("someone/bert").folder  # noqa: B018 - fetches
    assert main(command) == 0
    assert weights.read_bytes() == whole
    assert capsys.readouterr().out.count("written  model:someone/bert@") == 2


def test_mirror_whose_record_of_a_branch_cannot_be_written_is_incomplete(hub, tmp_path, capsys):
    """Without the commit of `main`, a machine without the Hub would not find the model, or an older one."""
    publish(hub, [("someone/bert", None)])
    command = ["mirror", str(tmp_path / "mirror"), "model:someone/bert"]
    assert main(command) == 0
    (refs,) = {path.parent for path in (tmp_path / "mirror").rglob("refs/main")}
    shutil.rmtree(refs)
    refs.touch()  # as a folder without write permission, into which root can write
    assert main(command) == 1
    assert f"cannot write to {refs}/main: a part of the path is a file" in capsys.readouterr().err
