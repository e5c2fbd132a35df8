"""A recipe made from another one names only fields that exist."""

import pytest

from bsl.flows.recipes.shared import with_fields
from bsl.flows.recipes.tiny import tiny


def test_changed_rejects_a_misspelt_recipe_field() -> None:
    assert with_fields(tiny(), title="other: a title").title == "other: a title"
    with pytest.raises(ValueError, match="PipelineConfig has no field titel"):
        with_fields(tiny(), titel="other: a title")
