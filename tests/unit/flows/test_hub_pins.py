"""Everything that recipes read from the Hub is pinned or explained; changes since the pin are reported."""

import re
from functools import cache

import pytest

from flows.cli.main import main
from flows.hub import HubPin, is_hub_id, look, pins, unexplained
from flows.recipes import RECIPES, recipe
from storage.assets.embedded import EMBEDDED
from storage.datasets.registry import DATASETS
from tasks.evaluation.kinds import names_of
from tests.every import every

OLD = "a" * 40
MODEL = "sentence-transformers/nli-roberta-base-v2"


@cache
def known_pins():
    return {(pin.kind, pin.name, pin.revision): pin.reason for pin in pins()}


@every(RECIPES)
def test_hub_repositories_of_every_recipe_are_pinned_or_explained(name):
    config = recipe(name)
    sources = [spec.dataset or "" for spec in config.ingest.sources]
    assert all(source in DATASETS or source.startswith(EMBEDDED) or not source for source in sources)
    words = [*names_of(config.evaluation.sets), config.evaluation.dev or "", *config.scored, *sources]
    declared = [DATASETS[word.partition("/")[0]] for word in words if word.partition("/")[0] in DATASETS]
    read = [("model", model, revision) for model, revision in config.models() if is_hub_id(model)]
    read += [("dataset", dataset.hub_id, dataset.revision) for dataset in declared if dataset.hub_id]
    read += [("dataset", archive.hub_id, archive.revision) for dataset in declared if (archive := dataset.archive)]
    for pin in read:
        assert known_pins()[pin] or re.fullmatch("[0-9a-f]{40}", pin[2] or ""), pin


def test_pins_list_each_hub_repository_once():
    known = pins()
    assert unexplained(known) == []
    assert len({(pin.kind, pin.name) for pin in known}) == len(known), "one repository is read at two commits"
    assert {"google-bert/bert-base-uncased", "stanfordnlp/snli", "mteb/sts16-sts"} <= {pin.name for pin in known}


def test_look_distinguishes_same_moved_unpinned_and_missing_pins(hub):
    weights = {"config.json": b"{}", "model.safetensors": b"old", "README.md": b"old"}
    hub.add("models", MODEL, weights, OLD)
    assert look(HubPin("model", MODEL, OLD)).verdict == "same"
    newest = hub.add("models", MODEL, {**weights, "model.safetensors": b"new", "onnx/model.onnx": b"new"})
    moved = look(HubPin("model", MODEL, OLD))
    assert (moved.verdict, moved.newest, moved.detail) == ("moved", newest, "model.safetensors")
    unpinned = look(HubPin("model", MODEL, None, "no source names one"))
    assert (unpinned.verdict, unpinned.newest, unpinned.detail) == ("unpinned", newest, "no source names one")
    gone = look(HubPin("model", "someone/gone", OLD))
    assert gone.verdict == "lacking"
    assert "no such repository, or it is private (401)" in gone.detail


@pytest.mark.parametrize("how", [[], ["--check"]])
def test_pins_check_fails_if_the_hub_is_unreachable(hub, capsys, how):
    hub.stop()
    assert main(["pins", *how]) == (1 if how else 0)
    out = capsys.readouterr().out
    assert "google-bert/bert-base-uncased" in out
    assert ("does not answer" in " ".join(out.split())) == bool(how)
