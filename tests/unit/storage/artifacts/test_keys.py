"""Artifact keys: equal for equal arguments on every machine, different for anything that changes a result."""

from typing import Annotated, ClassVar

import pytest
from pydantic import BaseModel, ConfigDict

from bsl.models.training.config import TrainingConfig
from bsl.models.views.config import AugmentConfig
from bsl.storage.artifacts.keys import artifact_key, canonical, fingerprint
from bsl.storage.artifacts.refs import CorpusRef
from bsl.storage.record import AddedAs, NotInKey, Record


class Located(BaseModel):
    model_config = ConfigDict(frozen=True)
    digest: str
    location: Annotated[str, NotInKey] = ""


def test_artifact_key_ignores_fields_marked_not_in_key():
    here, there = Located(digest="d", location="/a"), Located(digest="d", location="/b")
    assert artifact_key("ingest", "corpus", 1, {"source": here}) == artifact_key(
        "ingest", "corpus", 1, {"source": there}
    )


@pytest.mark.parametrize("config", [AugmentConfig, TrainingConfig])
def test_added_field_that_is_off_changes_no_key(config):
    class Upgraded(config):
        extra: Annotated[int, AddedAs(0)] = 0
        later: Annotated[int | None, AddedAs(0)] = None  # its default changed after the release that added it

    assert fingerprint(Upgraded(later=0)) == fingerprint(config())
    assert len({fingerprint(Upgraded(**given)) for given in ({}, {"later": 0}, {"extra": 1}, {"extra": 2})}) == 4


@pytest.mark.parametrize(
    ("stage", "kind", "version", "arguments"),
    [
        ("label", "corpus", 1, {"seed": 1}),
        ("ingest", "views", 1, {"seed": 1}),
        ("ingest", "corpus", 2, {"seed": 1}),
        ("ingest", "corpus", 1, {"seed": 2}),
        ("ingest", "corpus", 1, {"seeds": 1}),
    ],
)
def test_artifact_key_depends_on_stage_kind_version_and_arguments(stage, kind, version, arguments):
    assert artifact_key(stage, kind, version, arguments) != artifact_key("ingest", "corpus", 1, {"seed": 1})


def test_artifact_key_ignores_argument_order():
    assert artifact_key("ingest", "corpus", 1, {"a": 1, "b": 2}) == artifact_key(
        "ingest", "corpus", 1, {"b": 2, "a": 1}
    )


def test_artifact_key_equals_its_pinned_value():
    """A changed key would orphan every existing artifact of users."""
    ref = CorpusRef(key="0" * 64)
    found = artifact_key("make_views", "views", 1, {"corpus": ref, "config": {"pivots": ["de", "fr"], "beam": 1}})
    assert found == "dd4177549e75a17c4858ecae61d5d15daaa4243a372f0cf98ab189a2b622782d"


def test_artifact_key_rejects_unsupported_objects():
    with pytest.raises(TypeError, match="Pass a reference, a frozen config or a JSON value"):
        canonical({"frame": object()})


def test_artifact_key_rejects_nan():
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
