"""No two stages share a key: the key contains the stage's name, and a name belongs to one function."""

import json
import pickle

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bsl.storage.artifacts.keys import artifact_key
from bsl.storage.artifacts.refs import ViewsRef
from bsl.storage.artifacts.schemas import VIEWS
from bsl.tasks.stage.cached import Stage, StageContext, stage
from bsl.tasks.stage.run_context import RunContext
from bsl.tasks.translation.translate import translate

NAMES = st.text(min_size=1, max_size=12)
ARGUMENTS = st.dictionaries(NAMES, st.one_of(st.integers(), st.text(max_size=8), st.booleans(), st.none()), max_size=3)
IDENTITIES = st.tuples(NAMES, NAMES, st.integers(1, 9), ARGUMENTS)


def first() -> Stage:
    @stage(ref=ViewsRef, version=1)
    def same_views(context: StageContext, corpus: str) -> None:
        """Views of one kind."""

    return same_views


def second() -> Stage:
    @stage(ref=ViewsRef, version=1)
    def same_views(context: StageContext, corpus: str) -> None:
        """Views of another kind."""

    return same_views


@stage(ref=ViewsRef, version=1)
def plain_views(context: StageContext, corpus: str) -> None:
    """Views."""
    context.draft.write(pl.DataFrame(schema=VIEWS))


@stage(ref=ViewsRef, version=1)
def fancy_views(context: StageContext, corpus: str) -> None:
    """Views made otherwise, from arguments that look the same."""


def test_second_stage_with_the_same_name_is_refused():
    first()
    first()  # the same function again, as after a second import
    with pytest.raises(ValueError, match=r"stage 'same_views' is already defined in .*first"):
        second()


def test_stages_that_differ_only_in_name_have_different_keys():
    keys = {made.ref_of(RunContext(), "c").key for made in (plain_views, fancy_views)}
    assert len(keys) == 2


def test_manifest_names_the_stage(tmp_path):
    site = RunContext(store=str(tmp_path / "store"))
    manifest = site.open_store().manifest(plain_views(site, "c"))
    assert manifest.provenance.stage == "plain_views"


def test_stage_is_pickled_by_name():
    assert pickle.loads(pickle.dumps(translate)) is translate
    assert len(pickle.dumps(translate)) < 200


@given(IDENTITIES, IDENTITIES)
def test_different_identities_have_different_keys(one, other):
    same_arguments = json.dumps(one[3], sort_keys=True) == json.dumps(other[3], sort_keys=True)
    assert (artifact_key(*one) == artifact_key(*other)) == (one[:3] == other[:3] and same_arguments)
