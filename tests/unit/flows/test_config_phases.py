"""Configurations with several trainings in a row, and without training."""

import pytest

from flows.config import override
from flows.pipeline import run
from flows.recipes import recipe
from flows.recipes.shared import ALONE
from models.objectives.config import ContrastiveConfig
from models.training.config import TrainingConfig
from storage.errors import SourceError
from tasks.settings import Phase
from tasks.stage.run_context import RunContext

EARLIER = Phase(pairs=ALONE, training=TrainingConfig(objective=ContrastiveConfig(), seed=3))


def test_systems_are_named_by_what_trained_them_in_order():
    config = recipe("tiny-entail").model_copy(update={"earlier": (EARLIER,)})
    assert config.systems == (
        "before contrastive training (mean)",
        "after contrastive training",
        "after contrastive training, then BSL + in-batch negatives",
    )
    assert config.phases[0] == EARLIER
    assert config.phases[1].pairs == config.pairs


def test_without_training_an_encoder_is_called_by_its_name_and_asks_for_no_labels():
    config = override(recipe("tiny-entail"), {"training": None})
    assert config.phases == ()
    assert config.systems == ("embedded:bert-mini (mean)",)
    assert not config.needs_labels


def test_an_earlier_training_without_a_last_one_is_refused():
    with pytest.raises(ValueError, match="`earlier` has trainings, but `training` is null"):
        override(recipe("tiny"), {"earlier": [EARLIER.model_dump()], "training": None})


def test_a_seed_reaches_every_phase():
    config = recipe("tiny").model_copy(update={"earlier": (EARLIER,)})
    assert [phase.training.seed for phase in config.seeded(7).phases] == [7, 7]
    untrained = override(recipe("tiny"), {"training": None})
    assert untrained.seeded(7) == untrained


def test_a_teacher_of_any_phase_is_a_model_of_the_run():
    teacher = recipe("nli").encoder
    config = recipe("tiny").model_copy(update={"earlier": (EARLIER.model_copy(update={"teacher": teacher}),)})
    assert (teacher.model, teacher.revision) in config.models()


def test_fields_of_optional_sections_are_changed_alone():
    config = recipe("tiny").model_copy(update={"teacher": recipe("nli").encoder})
    assert override(config, {"teacher": {"pooling": "cls"}}).teacher == recipe("nli").encoder.model_copy(
        update={"pooling": "cls"}
    )


def test_scored_sets_of_every_phase_are_named_before_anything_runs():
    assert recipe("sbert-nli-stsb").scored == ("stsb/train",)
    assert recipe("tiny-stsb").scored == ("embedded:stsb/train",)
    assert recipe("tiny").scored == ()


def test_a_teacher_that_nobody_has_is_said_before_anything_is_made(tmp_path):
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
