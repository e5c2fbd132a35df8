"""Recipes list the models and datasets that they read from outside, which a mirror must contain."""

from bsl.flows.cli.main import main
from bsl.flows.cli.terminal.overrides import configured
from bsl.flows.hub import is_hub_id, needed
from bsl.flows.recipes import RECIPES, recipe
from bsl.flows.recipes.listing import own_files
from bsl.flows.recipes.untrained import GLOVE
from bsl.storage.sources.sources import SourceSpec
from tests.every import every


def test_needed_lists_pinned_models_sources_and_evaluation_sets():
    config = recipe("nli")
    found = needed(config)
    assert f"model:{config.encoder.model}@{config.encoder.revision}" in found
    assert {f"model:{name}@{revision}" for name, revision in config.models()} <= set(found)
    assert set(config.ingest.sources) <= set(found)
    assert {"stsb", "sts12", "sickr", "trec"} <= set(found)


def test_needed_omits_embedded_assets_and_local_files(tmp_path):
    assert needed(recipe("tiny")) == ()
    own = configured("tiny", [f"encoder.model={tmp_path}", f'ingest.sources=[{{"path":"{tmp_path}/a.txt"}}]'])
    assert needed(own) == ()
    assert is_hub_id("someone/encoder")
    for name in ("embedded:bert-mini", "./encoder", "checkpoint/latest", "glove.txt", str(tmp_path)):
        assert not is_hub_id(name)


def test_mirror_lists_own_files_without_mirroring_them(tmp_path, capsys):
    assert own_files(recipe("tiny")) == ()
    assert own_files(recipe("synonym")) == ("WordNet 3.0",)
    assert own_files(recipe("glove")) == (GLOVE,)
    own = configured("tiny", ["encoder.model=./encoder", 'ingest.sources=[{"path":"s3://b/a.txt"}]'])
    assert own_files(own) == ("folder 's3://b/a.txt'", "./encoder")
    settings = ['ingest.sources=[{"path":"mine.txt"}]']
    assert main(["mirror", str(tmp_path / "made"), "recipe:tiny", "--set", *settings]) == 0
    assert capsys.readouterr().out == "yours    folder 'mine.txt'\n"


def test_needed_preserves_hub_config_and_set_names():
    config = configured(
        "tiny", ['evaluation.sets=["sts12-tok"]', 'ingest.sources=[{"dataset":"a/b","hub_config":"x","split":"dev"}]']
    )
    assert needed(config) == (SourceSpec(dataset="a/b", hub_config="x", split="dev"), "sts12-tok")


@every(RECIPES)
def test_recipes_need_hub_models_unless_all_are_embedded(name):
    embedded = all(model.startswith("embedded:") for model, _ in recipe(name).models())
    assert any(str(each).startswith("model:") for each in needed(recipe(name))) is not embedded or "glove" in name
