"""Everything that recipes read from the Hub is pinned or explained."""

import re
from functools import cache

from bsl.flows.cli.main import main
from bsl.flows.hub import is_hub_id, pins
from bsl.flows.recipes import RECIPES, recipe
from bsl.storage.assets.embedded import EMBEDDED
from bsl.storage.datasets.registry import DATASETS
from bsl.tasks.evaluation.kinds import names_of
from tests.every import every


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
    assert all(pin.revision or pin.reason for pin in known)
    assert len({(pin.kind, pin.name) for pin in known}) == len(known), "one repository is read at two commits"
    assert {"google-bert/bert-base-uncased", "stanfordnlp/snli", "mteb/sts16-sts"} <= {pin.name for pin in known}


def test_pins_prints_the_commits(capsys):
    assert main(["pins"]) == 0
    assert "google-bert/bert-base-uncased" in capsys.readouterr().out
