"""Sets that selected an encoder do not count as test sets of a sweep."""

import pytest

from bsl.flows.config import override
from bsl.flows.recipes import recipe
from bsl.flows.sweep.sweep import without_dev_sets
from bsl.tasks.evaluation.kinds import available
from bsl.tasks.stage.run_context import RunContext

DEV, TEST = "embedded:stsb/dev", "embedded:stsb/test"


@pytest.fixture
def drawn(tmp_path):
    return available(RunContext(store=str(tmp_path), device="cpu"), [DEV, TEST]).drawn


def configs(*dev_sets, **training):
    return [override(recipe("tiny"), {"evaluation": {"dev": dev}, "training": training}) for dev in dev_sets]


@pytest.mark.parametrize(
    ("dev_sets", "counted"),
    [([DEV], {"test"}), ([TEST], set()), (["stsb/test"], set()), ([DEV, TEST], set()), ([None], {"test"})],
)
def test_set_that_selected_an_encoder_is_no_test_set_whatever_its_split(drawn, dev_sets, counted):
    found = without_dev_sets(drawn, configs(*dev_sets))
    assert {evaluation_set.split for evaluation_set in found.values()} == counted


def test_set_named_as_dev_counts_if_the_last_step_was_taken(drawn):
    found = without_dev_sets(drawn, configs(TEST, select="last"))
    assert [evaluation_set.split for evaluation_set in found.values()] == ["test"]
