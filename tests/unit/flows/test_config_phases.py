"""Configurations with several trainings in a row, and without training."""

import pytest

from bsl.flows.config import override
from bsl.flows.pipeline import run
from bsl.flows.recipes import recipe
from bsl.flows.recipes.shared import ALONE
from bsl.models.objectives.contrastive_config import ContrastiveConfig
from bsl.models.training.config import TrainingConfig
from bsl.storage.errors import SourceError
from bsl.tasks.settings import Phase
from bsl.tasks.stage.run_context import RunContext

EARLIER = Phase(pairs=ALONE, training=TrainingConfig(objective=ContrastiveConfig(), seed=3))


def test_system_names_list_training_phases_in_order():
    config = recipe("tiny-entail").model_copy(update={"earlier": (EARLIER,)})
    assert config.systems == (
        "before contrastive training (mean)",
        "after contrastive training",
        "after contrastive training, then BSL + in-batch negatives",
    )
    assert config.phases[0] == EARLIER
    assert config.phases[1].pairs == config.pairs


def test_config_without_training_has_untrained_system_only():
    config = override(recipe("tiny-entail"), {"training": None})
    assert config.phases == ()
    assert config.systems == ("embedded:bert-mini (mean)",)
    assert not config.needs_labels


def test_earlier_phases_without_final_training_are_rejected():
    with pytest.raises(ValueError, match="`earlier` has trainings, but `training` is null"):
        override(recipe("tiny"), {"earlier": [EARLIER.model_dump()], "training": None})


def test_seeded_sets_the_seed_of_every_phase():
    config = recipe("tiny").model_copy(update={"earlier": (EARLIER,)})
    assert [phase.training.seed for phase in config.seeded(7).phases] == [7, 7]
    untrained = override(recipe("tiny"), {"training": None})
    assert untrained.seeded(7) == untrained


def test_models_include_teachers_of_every_phase():
    teacher = recipe("nli").encoder
    config = recipe("tiny").model_copy(update={"earlier": (EARLIER.model_copy(update={"teacher": teacher}),)})
    assert (teacher.model, teacher.revision) in config.models()


def test_override_merges_fields_of_optional_sections():
    config = recipe("tiny").model_copy(update={"teacher": recipe("nli").encoder})
    assert override(config, {"teacher": {"pooling": "cls"}}).teacher == recipe("nli").encoder.model_copy(
        update={"pooling": "cls"}
    )


def test_scored_lists_scored_pair_sets_of_every_phase():
    assert recipe("sbert-nli-stsb").scored == ("stsb/train",)
    assert recipe("tiny-stsb").scored == ("embedded:stsb/train",)
    assert recipe("tiny").scored == ()


def test_missing_teacher_is_reported_before_missing_sources(tmp_path):
    """The teacher is checked even before the sources, which do not exist here."""
    changes = {"teacher": {"model": f"{tmp_path}/none"}, "ingest": {"sources": [{"path": f"{tmp_path}/none.txt"}]}}
    config = override(recipe("tiny-distil"), changes)
    with pytest.raises(SourceError, match=r"/none: no such folder, expected a model"):
        run(config, RunContext(store=str(tmp_path / "store"), device="cpu"))
    with pytest.raises(SourceError, match=r"none\.txt: no such file"):
        run(
            override(config, {"teacher": {"model": "embedded:mini-sentence"}}),
            RunContext(store=str(tmp_path / "store")),
        )
