"""Sets that selected an encoder do not count as test sets of a sweep."""

import pytest

from bsl.flows.config import override
from bsl.flows.recipes import recipe
from bsl.flows.sweep.sweep import without_dev_sets
from bsl.tasks.evaluation.kinds import available

DEV, TEST = "embedded:stsb/dev", "embedded:stsb/test"


@pytest.mark.parametrize(
    ("dev_sets", "training", "counted"),
    [
        ([DEV], {}, {"test"}),
        ([TEST], {}, set()),
        (["stsb/test"], {}, set()),
        ([DEV, TEST], {}, set()),
        ([None], {}, {"test"}),
        ([TEST], {"select": "last"}, {"test"}),  # no set selects the last step
    ],
)
def test_set_that_selected_an_encoder_is_no_test_set_whatever_its_split(site, dev_sets, training, counted):
    configs = [override(recipe("tiny"), {"evaluation": {"dev": dev}, "training": training}) for dev in dev_sets]
    found = without_dev_sets(available(site, [DEV, TEST]).drawn, configs)
    assert {evaluation_set.split for evaluation_set in found.values()} == counted
