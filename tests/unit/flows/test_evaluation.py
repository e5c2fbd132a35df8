"""A transform of target sets is fitted once for each dataset."""

from bsl.flows.config import override
from bsl.flows.evaluation import posthoc_systems
from bsl.flows.recipes import recipe
from bsl.models.encoder.config import EncoderConfig
from bsl.storage.artifacts.refs import CheckpointRef, CorpusRef, EmbeddingsRef, PassagesRef
from bsl.storage.assets.embedded import embedded_path
from bsl.tasks.evaluation.kinds import FoundSets, available
from bsl.tasks.evaluation.own_text import HeldOutText
from bsl.tasks.evaluation.systems import NamedEncoder, System
from bsl.tasks.stage.progress import planning
from bsl.tasks.stage.run_context import RunContext

KEY = "0" * 64


def planned(site, found):
    """Return the systems after the transform, and the fits."""
    encoder = NamedEncoder(label="a", encoder=CheckpointRef(key=KEY), config=EncoderConfig(model="a"))
    before = System("a", KEY, EmbeddingsRef(key=KEY))
    config = override(recipe("tiny-whitening-target"), {"evaluation": {"precision": "fp32"}})
    with planning() as plan:
        systems = posthoc_systems(site, encoder, before, CorpusRef(key=KEY), found, config)
    return systems, [step for step in plan if step.stage == "fit_on_sets"]


def test_packaged_split_is_of_the_same_dataset_as_splits_of_the_mirror(tmp_path):
    """Regression: STS-B had two transforms, and each of its sets two scores."""
    site = RunContext(store=str(tmp_path / "store"), mirror=str(embedded_path("stsb").parent))
    (system,), (fit,) = planned(site, available(site, ["stsb/dev", "embedded:stsb/test"]))
    assert system.datasets == {"stsb"}
    assert [one["split"] for one in fit.config["sets"]] == ["train", "dev", "test"]


def test_held_out_text_of_a_run_is_a_target(tmp_path):
    """Regression: a file named `your text` was missing."""
    site = RunContext(store=str(tmp_path / "store"))
    text = HeldOutText(passages=PassagesRef(key=KEY), store=site.store)
    (system,), (fit,) = planned(site, FoundSets({"own:your text": text}, {}))
    assert system.datasets == {"your text"}
    assert text.passages in fit.inputs
