"""The time of a run is estimated from similar artifacts in the store, and only from these."""

import os

import pytest

from bsl.flows.estimate import estimate
from bsl.models.training.config import TrainingConfig
from bsl.storage.artifacts.refs import CorpusRef
from bsl.tasks.stage.cached import stage
from bsl.tasks.stage.progress import planning


@stage(ref=CorpusRef, version=1)
def estimated_for_this_test(context, config: TrainingConfig, text: str):
    (context.draft.folder / "text.txt").write_text(text)
    context.draft.note({})


@stage(ref=CorpusRef, version=1)
def unknown_to_this_test(context, config: TrainingConfig):
    raise AssertionError(config)


@pytest.fixture
def store(site, monkeypatch):
    for text, seconds in (("short", 20.0), ("long", 600.0)):
        ref = estimated_for_this_test(site, TrainingConfig(), text)
        store = site.open_store()
        manifest = store.manifest(ref)
        path = store.local / ref.path / "manifest.json"
        path.write_text(manifest.model_copy(update={"duration_s": seconds}).model_dump_json())
    return site.open_store()


def expected(site, *calls):
    with planning() as plan:
        for stage_of, *arguments in calls:
            stage_of(site, *arguments)
    return estimate(site.open_store(), plan)


SIMILAR = TrainingConfig(lr=0.5)
FAR = TrainingConfig(lr=0.5, epochs=9, batch_size=7, max_steps=3, warmup=0.5, weight_decay=0.3, seed=9, eval_every=4)


def test_duration_is_that_of_the_artifact_with_the_most_equal_settings(site, store):
    told = expected(site, (estimated_for_this_test, SIMILAR, "long"))
    assert told == "expected, as in earlier runs: ~10 min (estimated_for_this_test ~10 min)"
    assert "~20 s" in expected(site, (estimated_for_this_test, SIMILAR, "short"))


def test_stage_without_a_similar_artifact_is_unknown(site, store):
    known, other = (estimated_for_this_test, SIMILAR, "short"), (unknown_to_this_test, TrainingConfig())
    told = expected(site, known, other)
    assert told.startswith("expected, as in earlier runs: at least ~20 s")
    assert "unknown: unknown_to_this_test)" in told
    assert expected(site, other) == ""
    assert expected(site, (estimated_for_this_test, FAR, "other")) == ""


def test_only_the_newest_manifests_are_read(site, store, monkeypatch):
    monkeypatch.setattr("bsl.flows.estimate._MOST", 1)
    refs = {store.manifest(ref).provenance.config["text"]: ref for ref in store.refs("corpus")}
    for text, when in (("long", 2_000_000_000), ("short", 1_000_000_000)):
        os.utime(store.local / refs[text].path / "manifest.json", (when, when))
    assert "~10 min" in expected(site, (estimated_for_this_test, SIMILAR, "short"))
