"""BSL's recipes as a user meets them: doctor, run, run again without the Hub, mirror, run from the mirror.

Small in every size, the same in every step. `BSL_WHOLE=1 pytest tests/flows/test_recipes_from_the_hub.py` takes every
recipe of the paper's rows and all of its sets; without it a few stand for their kinds.
"""

import itertools
import os

import nltk.data
import pytest

from flows.cli.main import main
from flows.config import override
from flows.pipeline import pipeline
from flows.recipes import recipe
from flows.recipes.paper import PAPER
from models.translation.catalog import MINI
from storage.declarations import DATASETS
from storage.embedded import EMBEDDED
from storage.readers.afs import TOPICS
from tasks.doctor import examine
from tasks.evaluation.kinds import names_of
from tasks.site import Site
from tests.hub.client import offline, use
from tests.hub.repositories import publish, publish_nli, publish_sts, sentences
from tests.hub.server import StandInHub
from tests.tiny_wordnet import write_tiny_wordnet

WHOLE = bool(os.environ.get("BSL_WHOLE"))
FEW = ("nli", "entail", "multilingual-sup")
STS = [name for name, declared in DATASETS.items() if declared.hub_id and declared.score_range]
SHORT = {"sts17-bsl": ("sts17-en-de", "sts17-ar-ar"), "afs": ("afs",), "sts": ("sts16", "sickr/test")}


NAMES = tuple(make().title.partition(":")[0] for make in PAPER) if WHOLE else FEW


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """The Hub with all that recipes name, a folder of what is on no Hub, and one store."""
    folder = tmp_path_factory.mktemp("world")
    hub = StandInHub()
    publish(hub, [model for name in NAMES for model in recipe(name).models() if not model[0].startswith(EMBEDDED)])
    publish_nli(hub)
    publish_sts(hub, STS)
    _files_of_ones_own(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(nltk.data, "path", [str(folder / "nltk")])
        patch.setenv("BSL_STORE", str(folder / "store"))
        patch.setenv("BSL_DEVICE", "cpu")
        use(hub, folder / "cache", patch)
        yield hub, folder
    hub.stop()


def _files_of_ones_own(folder) -> None:
    """Sentences, books, AFS and WordNet, which are no Hub's."""
    (folder / "books").mkdir()
    (folder / "books" / "novel.txt").write_text("\n".join(sentences()[60:120]))
    (folder / "files" / "afs").mkdir(parents=True)
    quiet = [text.replace(",", "").replace('"', "") for text in sentences()[:50]]
    rows = [f"{1 + row % 5},,,,,,,,,{one},{other}" for row, (one, other) in enumerate(itertools.pairwise(quiet))]
    for topic in TOPICS:
        file = folder / "files" / "afs" / f"ArgPairs_{topic}.csv"
        file.write_text("\n".join(["header", *rows]), encoding="latin-1")
    write_tiny_wordnet(folder / "nltk" / "corpora" / "wordnet")


def small(name: str) -> dict[str, object]:
    """A recipe's own settings, each size made small; its translators search as the package's, which they are."""
    config = recipe(name)
    views = [view.model_dump() for view in config.augment.translations]
    for hop in [hop for view in views for hop in view["hops"]]:
        mini = MINI[f"{hop['source_lang']}-{hop['target_lang']}"]
        hop |= {field: getattr(mini, field) for field in ("target_token", "beam", "no_repeat_ngram")}
    words = config.evaluation.sets
    sets = words if WHOLE else [part for word in words for part in SHORT.get(word, (word,)) if word != "senteval"]
    training = {"batch_size": 8, "max_steps": 2, "eval_every": 2, "collapse": None}
    changes: dict[str, object] = {
        "augment": {"translations": views},
        "evaluation": {"sets": list(sets), "bootstrap": {"resamples": 100}},
    }
    return changes | ({"training": training} if config.training is not None else {})


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_runs_from_the_hub_from_its_cache_and_from_a_mirror(world, name, monkeypatch, capsys):
    hub, folder = world
    changes = small(name)
    config = override(recipe(name), changes)
    site = Site(store=str(folder / "store"), mirror=str(folder / "files"), device="cpu")
    assert [check for check in examine(site, "", config, config.models()) if check.verdict == "NO"] == []

    first = pipeline(name, changes, site)
    asked = len(hub.log)
    offline(monkeypatch)
    assert pipeline(name, changes, site) == first
    assert hub.log[asked:] == []
    monkeypatch.undo()

    mirror = folder / "mirror"
    words = [*names_of(config.evaluation.sets), config.evaluation.dev or ""]
    sets = {word.partition("/")[0] for word in words} | {spec.dataset for spec in config.ingest.sources}
    wanted = [name for name in sets if name == "afs" or (name in DATASETS and DATASETS[name].hub_id)]
    names = [f"model:{model}" for model, _ in config.models()] + sorted(wanted)
    assert main(["mirror", str(mirror), *names, "--mirror", str(folder / "files")]) == 0, capsys.readouterr().err
    asked = len(hub.log)
    use(hub, folder / "empty", monkeypatch)
    offline(monkeypatch)
    assert pipeline(name, changes, site.model_copy(update={"mirror": str(mirror)})) == first
    assert hub.log[asked:] == []
