"""Recipes work as a user runs them: doctor, run, rerun without the Hub, mirror, run from the mirror, run by a worker.

All sizes are small, all steps are the recipe's. A few recipes represent the kinds of repositories; BSL_RECIPES=all
takes every recipe through every step.
"""

import os

import nltk.data
import pytest
from prefect.settings import get_current_settings

from tests.hub.client import use
from tests.hub.cluster import of_the_hub, prefect, worker
from tests.hub.journey import Journeys
from tests.hub.server import StandInHub
from tests.hub.world import needs_the_hub, publish_all, write_own_files
from tests.servers import runs_in

pytestmark = pytest.mark.slow  # each recipe runs several times
FEW = {
    "nli": "Parquet, pickled translators, a masked LM, gz JSONL, an archive",
    "multilingual-sup": "a folder of sentence-transformers, a set of several configurations",
    "published-labse": "a Dense module that is a pickle alone",
}
ALL = os.environ.get("BSL_RECIPES") == "all"
NAMES = needs_the_hub() if ALL else tuple(FEW)
QUICK = "published-labse"


@pytest.fixture(scope="module")
def journeys(prefect_server, tmp_path_factory):
    """Serve all repositories that recipes name, write the files that are on no Hub, and use the tests' server."""
    folder, hub = tmp_path_factory.mktemp("world"), StandInHub()
    publish_all(hub, NAMES)
    files = write_own_files(folder)
    site = {
        "BSL_STORE": str(folder / "store"),
        "BSL_CACHE": str(folder / "cache"),
        "BSL_DEVICE": "cpu",
        "BSL_DATA_MIRROR": str(files),
    }
    server = {"PREFECT_API_URL": str(get_current_settings().api.url)}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(nltk.data, "path", [str(folder / "nltk")])
        for name, value in {**of_the_hub(hub, folder / "home"), **runs_in(folder), **server}.items():
            patch.setenv(name, value)
        use(hub, folder / "home", patch)
        yield Journeys(hub, folder, files), folder, site
    hub.stop()


@pytest.fixture
def travel(journeys, monkeypatch):
    """Return the journeys of recipes, with the BSL_ settings that they need for one test."""
    made, _, site = journeys
    for name, value in site.items():
        monkeypatch.setenv(name, value)
    return made


@pytest.mark.parametrize("name", NAMES)
def test_recipe_runs_from_hub_cache_and_mirror(travel, name):
    for step in [step for step in travel.steps if step != "deployment"]:
        travel.steps[step](name)


def test_worker_runs_a_deployed_hub_recipe(travel, journeys):
    _, folder, _ = journeys
    with worker(folder):
        prefect("--no-prompt", "deploy", "--name", "any")
        for name in NAMES if ALL else (QUICK,):
            travel.steps["run"](name)  # free if an earlier test has run it
            travel.steps["deployment"](name)
