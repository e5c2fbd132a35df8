"""Artifact keys: equal for equal arguments on every machine, different for anything that changes a result."""

from typing import Annotated, ClassVar

import pytest

from bsl.models.training.config import TrainingConfig
from bsl.models.views.config import AugmentConfig
from bsl.storage.artifacts.keys import artifact_key, canonical, fingerprint
from bsl.storage.artifacts.refs import CorpusRef
from bsl.storage.record import AddedAs, Record


@pytest.mark.parametrize("config", [AugmentConfig, TrainingConfig])
def test_added_field_that_is_off_changes_no_key(config):
    class Upgraded(config):
        extra: Annotated[int, AddedAs(0)] = 0
        later: Annotated[int | None, AddedAs(0)] = None  # its default changed after the release that added it

    assert fingerprint(Upgraded(later=0)) == fingerprint(config())
    assert len({fingerprint(Upgraded(**given)) for given in ({}, {"later": 0}, {"extra": 1}, {"extra": 2})}) == 4


def test_artifact_key_depends_on_stage_kind_version_and_arguments_in_any_order():
    made = ("ingest", "corpus", 1, {"a": 1, "b": 2})
    others = [
        ("label", *made[1:]), ("ingest", "views", *made[2:]), ("ingest", "corpus", 2, made[3]),
        (*made[:3], {"a": 1, "b": 3}), (*made[:3], {"a": 1, "c": 2}),
    ]  # fmt: skip
    assert artifact_key(*made) == artifact_key(*made[:3], {"b": 2, "a": 1})
    assert len({artifact_key(*each) for each in (made, *others)}) == 6


def test_artifact_key_equals_its_pinned_value():
    """A changed key would orphan every existing artifact of users."""
    ref = CorpusRef(key="0" * 64)
    found = artifact_key("make_views", "views", 1, {"corpus": ref, "config": {"pivots": ["de", "fr"], "beam": 1}})
    assert found == "dd4177549e75a17c4858ecae61d5d15daaa4243a372f0cf98ab189a2b622782d"


def test_artifact_key_rejects_unsupported_objects_and_nan():
    with pytest.raises(TypeError, match="Pass a reference, a frozen config or a JSON value"):
        canonical({"frame": object()})
    with pytest.raises(ValueError, match="JSON"):
        artifact_key("make_views", "views", 1, {"lr": float("nan")})


def test_removed_field_keeps_the_key_of_its_default():
    class Before(Record):
        weight: float = 0.5
        queue: int = 0

    class After(Record):
        removed: ClassVar = {"queue": 0}
        weight: float = 0.5

    keys = [fingerprint(config) for config in (Before(), After(), Before(queue=1), After(weight=0.4))]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3
