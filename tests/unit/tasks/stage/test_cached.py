"""No two stages share a key: it has the stage's name and its arguments; a stage without memory publishes nothing."""

import pickle
from pathlib import Path

import polars as pl
import pytest

from bsl.models.encoder.config import EncoderConfig
from bsl.models.errors import EncoderError
from bsl.models.evaluation.config import BootstrapConfig
from bsl.storage.artifacts.keys import artifact_key
from bsl.storage.artifacts.refs import CorpusRef, ViewsRef
from bsl.storage.sources.model_sources import ResolvedModel
from bsl.tasks.stage.cached import StageContext, StageInputs, stage
from bsl.tasks.translation.translate import translate
from tests.hostile import key, put


class Sources(StageInputs):
    views: ViewsRef
    more: dict[str, tuple[ViewsRef, ...]]
    config: BootstrapConfig


@stage(ref=CorpusRef, version=3)
def grouped(context: StageContext, sources: Sources, title: str) -> None:
    """Make a corpus of one title."""
    rows = {"sentence_id": [sources.config.seed], "text": [title], "source": ["t"], "lang": ["en"]}
    context.draft.write(pl.DataFrame(rows, schema_overrides={"sentence_id": pl.UInt64}))


@stage(ref=CorpusRef, version=3)
def other(context: StageContext, sources: Sources, title: str) -> None:
    """Make another corpus, from arguments that look the same."""


@stage(ref=CorpusRef, version=3)
def faulty(context: StageContext, encoder: ResolvedModel, config: EncoderConfig) -> None:
    """Fail as a stage whose encoder has a fault."""
    raise EncoderError(f"{config.model}: no dropout")


@pytest.mark.parametrize(
    ("identity", "name"),
    [
        (f"sha256:{'a' * 64}", "/encoders/mine"),
        (f"embedded:bert-mini@{'a' * 64}", "embedded:bert-mini"),
        ("org/model@c0ffee", "org/model@c0ffee"),
    ],
)
def test_error_of_a_stage_names_a_model_by_its_place(site, identity, name):
    encoder = ResolvedModel(identity=identity, location=Path("/encoders/mine"))
    with pytest.raises(EncoderError, match=f"^{name}: no dropout$"):
        faulty(site, encoder, EncoderConfig(model=identity))


def test_second_stage_with_the_same_name_is_refused():
    def define():
        @stage(ref=ViewsRef, version=1)
        def same_views(context: StageContext, corpus: str) -> None:
            """Views of one kind."""

    define()
    define()  # the same function again, as after a second import
    with pytest.raises(ValueError, match=r"stage 'same_views' is already defined in .*define"):

        @stage(ref=ViewsRef, version=1)
        def same_views(context: StageContext, corpus: str) -> None:
            """Views of another kind."""


def test_stage_is_pickled_by_name():
    assert pickle.loads(pickle.dumps(translate)) is translate
    assert len(pickle.dumps(translate)) < 200


def test_stage_and_fields_of_grouped_inputs_enter_key_and_provenance(site):
    store = site.open_store()
    views, more = (put(store, number) for number in (1, 2))
    config = BootstrapConfig(seed=7)
    given = Sources(views=views, more={"a": (more,)}, config=config)
    made = grouped(site, given, "title")
    fields = {"views": views, "more": {"a": (more,)}, "config": config, "title": "title"}
    assert made.key == artifact_key("grouped", "corpus", 3, fields) != other.ref_of(site, given, "title").key
    provenance = store.manifest(made).provenance
    assert provenance.stage == "grouped"
    assert {name: entry.key for name, entry in provenance.inputs.items()} == {"views": key(1), "more.a.0": key(2)}
    assert (provenance.config["title"], provenance.config["config"]["seed"]) == ("title", 7)
    assert store.scan(made).collect()["text"].to_list() == ["title"]
