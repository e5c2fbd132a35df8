"""Sets that selected an encoder do not count as test sets of a sweep."""

import pytest

from bsl.flows.config import override
from bsl.flows.recipes import recipe
from bsl.tasks.evaluation.kinds import available
from bsl.tasks.reporting.sweep.runs import without_dev_sets

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
    settings = [config.model_dump(mode="json") for config in configs]
    found = without_dev_sets(available(site, [DEV, TEST]).drawn, settings)
    assert {evaluation_set.split for evaluation_set in found.values()} == counted
