"""Whole runs of recipes for a laptop: an encoder of two layers, twenty steps, sentences of the package."""

import pytest

from bsl.flows.config import override
from bsl.flows.pipeline import pipeline
from bsl.flows.recipes import recipe
from bsl.storage.artifacts.refs import CheckpointRef
from bsl.storage.artifacts.store import Store
from bsl.tasks.stage.run_context import RunContext

pytestmark = pytest.mark.usefixtures("without_charts")

STEPS = 20
FEW = {"batch_size": 16, "epochs": STEPS, "max_steps": STEPS, "eval_every": STEPS, "collapse": None, "select": "last"}
# Their objectives are tested in tests/unit/models/objectives, several phases in test_runs.py.
SLOW = {"scl", "stsb", "bsl-sbert", "mlm", "tsdae", "simcse"}
NAMES = ("sbert", "scl", "stsb", "bsl-sbert", "mlm", "tsdae", "simcse", "distil")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return one store for all recipes, so that shared artifacts are made once."""
    return RunContext(store=str(tmp_path_factory.mktemp("recipes") / "store"), device="cpu", threads=1)


def changes(name, encoder):
    base = recipe(name)
    earlier = [phase.model_dump() for phase in base.earlier]
    for phase in earlier:
        phase["training"] |= FEW
    return {
        # The corpus limit takes sentences by their ids, which separates most premises from their hypotheses: 96
        # sentences contain no whole pair, and 2,000 contain none with a third hypothesis.
        "ingest": {"corpus": {"limit": 2000 if base.needs_labels else 96}},
        "pairs": {"pairings": [base.pairs.pairings[0].model_dump()]},
        "encoder": encoder,
        "earlier": earlier,
        "training": FEW,
        "evaluation": {
            "precision": "fp32",
            "bootstrap": {"resamples": 100},
            "sets": ["embedded:stsb/test"],
            "dev": None,
        },
    }


@pytest.mark.parametrize(
    "name", [pytest.param(f"tiny-{name}", marks=[pytest.mark.slow] * (name in SLOW)) for name in NAMES]
)
def test_tiny_recipe_trains_twenty_steps_and_is_scored(name, site, encoder):
    changed = changes(name, encoder)
    config = override(recipe(name), changed)
    report, store = pipeline.fn(name, changed, site), Store(site.store)  # outside of Prefect
    made = [entry for entry in store.manifest(report).provenance.inputs.values() if entry.kind == "checkpoint"]
    assert len(made) == len(config.phases)
    for entry in made:
        losses = store.scan(CheckpointRef(key=entry.key), "training_log").collect()["loss"].drop_nulls()
        assert len(losses) == STEPS
        assert losses.is_finite().all()
    scores = store.scan(report, "scores").filter(metric="spearman", protocol="all").collect()
    figures = dict(scores.select("model", "value").rows())
    assert len({figures[label] for label in config.systems}) == len(config.phases) + 1  # every training changed it
    assert scores["value"].is_finite().all()
