"""Recipes list what they read from outside, which a mirror must contain, and all of it is pinned or explained."""

import json
import re
from functools import cache

from bsl.flows.cli.main import main
from bsl.flows.cli.terminal.overrides import configured
from bsl.flows.hub import is_hub_id, needed, pins
from bsl.flows.recipes import RECIPES, recipe
from bsl.flows.recipes.listing import own_files
from bsl.flows.recipes.untrained import GLOVE
from bsl.storage.assets.embedded import EMBEDDED
from bsl.storage.datasets.registry import DATASETS
from bsl.storage.sources.sources import SourceSpec
from bsl.tasks.evaluation.kinds import names_of
from tests.every import every


def test_needed_lists_pinned_models_sources_and_evaluation_sets():
    config = recipe("nli")
    found = needed(config)
    assert {f"model:{name}@{revision}" for name, revision in config.models()} <= set(found)
    assert {*config.ingest.sources, "stsb", "sts12", "sickr", "trec"} <= set(found)
    settings = ['evaluation.sets=["sts12-tok"]', 'ingest.sources=[{"dataset":"a/b","hub_config":"x","split":"dev"}]']
    assert needed(configured("tiny", settings)) == (SourceSpec(dataset="a/b", hub_config="x", split="dev"), "sts12-tok")


def test_needed_omits_embedded_assets_and_local_files(tmp_path):
    assert needed(recipe("tiny")) == ()
    own = configured("tiny", [f"encoder.model={tmp_path}", f'ingest.sources=[{{"path":"{tmp_path}/a.txt"}}]'])
    assert needed(own) == ()
    assert is_hub_id("someone/encoder")
    names = ("embedded:bert-mini", "./encoder", "checkpoint/latest", "glove.txt", str(tmp_path))
    assert not any(map(is_hub_id, names))


def test_mirror_lists_own_files_without_mirroring_them(tmp_path, capsys):
    found = [own_files(recipe(name)) for name in ("tiny", "synonym", "glove")]
    assert found == [(), ("WordNet 3.0",), (GLOVE,)]
    own = configured("tiny", ["encoder.model=./encoder", 'ingest.sources=[{"path":"s3://b/a.txt"}]'])
    assert own_files(own) == ("folder 's3://b/a.txt'", "./encoder")
    words = ["mirror", str(tmp_path / "made"), "recipe:tiny", "--set", 'ingest.sources=[{"path":"mine.txt"}]']
    assert main(words) == 0
    assert capsys.readouterr().out == "yours    folder 'mine.txt'\n"
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"files": {}, "lacking": {}, "yours": ["folder 'mine.txt'"]}
    assert main(["mirror", str(tmp_path / "made"), "recipe:tiny"]) == 0
    assert capsys.readouterr().out == "nothing to fetch: everything is in the package or a local file\n"


@cache
def known_pins():
    return {(pin.kind, pin.name, pin.revision): pin.reason for pin in pins()}


@every(RECIPES)
def test_hub_repositories_of_every_recipe_are_needed_and_pinned_or_explained(name):
    config = recipe(name)
    embedded = all(model.startswith("embedded:") for model, _ in config.models())
    assert any(str(each).startswith("model:") for each in needed(config)) is not embedded or "glove" in name
    sources = [spec.dataset or "" for spec in config.ingest.sources]
    assert all(source in DATASETS or source.startswith(EMBEDDED) or not source for source in sources)
    words = [*names_of(config.evaluation.sets), config.evaluation.dev or "", *config.scored, *sources]
    declared = [DATASETS[word.partition("/")[0]] for word in words if word.partition("/")[0] in DATASETS]
    read = [("model", model, revision) for model, revision in config.models() if is_hub_id(model)]
    read += [("dataset", dataset.hub_id, dataset.revision) for dataset in declared if dataset.hub_id]
    read += [("dataset", archive.hub_id, archive.revision) for dataset in declared if (archive := dataset.archive)]
    for pin in read:
        assert known_pins()[pin] or re.fullmatch("[0-9a-f]{40}", pin[2] or ""), pin


def test_pins_list_each_hub_repository_once(capsys):
    known = pins()
    assert all(pin.revision or pin.reason for pin in known)
    assert len({(pin.kind, pin.name) for pin in known}) == len(known), "one repository is read at two commits"
    assert {"google-bert/bert-base-uncased", "stanfordnlp/snli", "mteb/sts16-sts"} <= {pin.name for pin in known}
    assert main(["pins"]) == 0
    assert "google-bert/bert-base-uncased" in capsys.readouterr().out
