"""Recipes are complete and reject unknown fields; overrides are merged field by field; trainings in a row."""

import pytest

from bsl.flows.config import override
from bsl.flows.pipeline import run
from bsl.flows.recipes import RECIPES, recipe
from bsl.flows.recipes.shared import ALONE, with_fields
from bsl.models.objectives.contrastive_config import ContrastiveConfig
from bsl.models.training.config import TrainingConfig
from bsl.models.transforms.config import WhiteningConfig
from bsl.storage.errors import SourceError
from bsl.tasks.settings import Phase
from bsl.tasks.stage.run_context import RunContext
from tests.every import every

EARLIER = Phase(pairs=ALONE, training=TrainingConfig(objective=ContrastiveConfig(), seed=3))


@every(sorted(RECIPES))
def test_every_recipe_has_title_docstring_and_valid_config(name):
    config = recipe(name)
    assert override(config, {}) == config
    assert config.title.startswith(f"{name}:")
    assert RECIPES[name].__doc__


def test_override_of_a_field_leaves_other_fields_unchanged():
    base = recipe("tiny")
    changed = override(base, {"training": {"objective": {"momentum": 0.5}}})
    assert changed.training.objective.momentum == 0.5
    assert changed.training.objective.target_norm == base.training.objective.target_norm
    assert changed.model_copy(update={"training": base.training}) == base
    taught = base.model_copy(update={"teacher": recipe("nli").encoder})
    assert override(taught, {"teacher": {"pooling": "cls"}}).teacher == with_fields(taught.teacher, pooling="cls")
    assert override(base, {"training": {"objective": "bsl"}}) == base
    flow = recipe("tiny-flow")
    assert override(flow, {"transform": "flow"}) == flow
    assert override(flow, {"transform": {"lr": 0.01}}).transform == with_fields(flow.transform, lr=0.01)
    assert override(flow, {"transform": "whitening"}).transform == WhiteningConfig()


def test_changed_model_drops_the_previous_revision():
    base = recipe("nli")
    assert base.encoder.revision
    assert override(base, {"encoder": {"model": "other/model"}}).encoder.revision is None
    pinned = override(base, {"encoder": {"model": "other/model", "revision": "main"}})
    assert pinned.encoder.revision == "main"
    assert override(base, {"encoder": {"pooling": "cls"}}).encoder.revision == base.encoder.revision
    assert override(base, {"encoder": {"model": base.encoder.model}}).encoder == base.encoder


SOURCE = {"dataset": "snli", "split": "train", "revision": "0" * 40, "lang": "de", "name": "mine", "limit": 3}


@pytest.mark.parametrize(
    ("source", "changes", "expected"),
    [
        (SOURCE, {"path": "t.txt"}, {"path": "t.txt", "limit": 3}),
        (SOURCE, {"dataset": "multi_nli"}, {**SOURCE, "dataset": "multi_nli", "revision": None}),
        ({"path": "a.csv", "columns": ("x",), "limit": 3}, {"dataset": "snli"}, {"dataset": "snli", "limit": 3}),
        ({"path": "a.csv", "name": "wiki"}, {"path": "b/a.csv"}, {"path": "b/a.csv", "name": "wiki"}),
        ({}, {"path": "t.txt", "dataset": "snli", "split": "test"}, {"path": "t.txt"}),
    ],
)
def test_replaced_source_leaves_nothing_that_names_it(source, changes, expected):
    base = override(recipe("tiny"), {"ingest": {"sources": [source or SOURCE]}})
    found = override(base, {"ingest": {"sources": {"0": changes} if source else [changes]}}).ingest.sources
    assert found == override(recipe("tiny"), {"ingest": {"sources": [expected]}}).ingest.sources
    assert (found[0].dataset is None) == ("path" in expected)


def test_recipe_made_from_another_names_only_fields_that_exist():
    with pytest.raises(ValueError, match="PipelineConfig has no field titel"):
        with_fields(recipe("tiny"), titel="other: a title")


def test_trainings_in_a_row_are_named_seeded_and_listed_in_order():
    teacher = recipe("nli").encoder
    config = recipe("tiny-entail").model_copy(update={"earlier": (with_fields(EARLIER, teacher=teacher),)})
    assert config.systems == (
        "before contrastive training (mean)",
        "after contrastive training",
        "after contrastive training, then BSL + in-batch negatives",
    )
    assert config.phases[0] == config.earlier[0]
    assert config.phases[1].pairs == config.pairs
    assert [phase.training.seed for phase in config.seeded(7).phases] == [7, 7]
    assert (teacher.model, teacher.revision) in config.models()
    scored = [recipe(name).scored for name in ("sbert-nli-stsb", "tiny-stsb", "tiny")]
    assert scored == [("stsb/train",), ("embedded:stsb/train",), ()]


def test_config_without_training_has_untrained_system_only():
    config = override(recipe("tiny-entail"), {"training": None})
    assert config.phases == ()
    assert config.systems == ("embedded:bert-mini (mean)",)
    assert not config.needs_labels
    assert config.seeded(7) == config
    with pytest.raises(ValueError, match="`earlier` has trainings, but `training` is null"):
        override(config, {"earlier": [EARLIER.model_dump()]})


def test_missing_teacher_is_reported_before_missing_sources(tmp_path):
    """The teacher is checked even before the sources, which do not exist here."""
    changes = {"teacher": {"model": f"{tmp_path}/none"}, "ingest": {"sources": [{"path": f"{tmp_path}/none.txt"}]}}
    config, site = override(recipe("tiny-distil"), changes), RunContext(store=str(tmp_path / "store"), device="cpu")
    with pytest.raises(SourceError, match=r"/none: no such folder, expected a model"):
        run(config, site)
    with pytest.raises(SourceError, match=r"none\.txt: no such file"):
        run(override(config, {"teacher": {"model": "embedded:mini-sentence"}}), site)
