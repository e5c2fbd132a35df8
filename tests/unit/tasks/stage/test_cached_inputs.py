"""A group of stage arguments enters key and provenance as separate fields."""

import polars as pl

from bsl.models.evaluation.config import BootstrapConfig
from bsl.storage.artifacts.keys import artifact_key
from bsl.storage.artifacts.refs import CorpusRef, ViewsRef
from bsl.storage.artifacts.store import Store
from bsl.tasks.stage.cached import StageContext, StageInputs, stage
from bsl.tasks.stage.run_context import RunContext
from tests.hostile import VIEWS, WHY, key


class Sources(StageInputs):
    views: ViewsRef
    more: dict[str, tuple[ViewsRef, ...]]
    config: BootstrapConfig


@stage(ref=CorpusRef, version=3)
def grouped(context: StageContext, sources: Sources, title: str) -> None:
    """Make a corpus of one title."""
    rows = {"sentence_id": [sources.config.seed], "text": [title], "source": ["t"], "lang": ["en"]}
    context.draft.write(pl.DataFrame(rows, schema_overrides={"sentence_id": pl.UInt64}))


def test_grouped_inputs_enter_key_and_provenance_as_separate_fields(tmp_path):
    store = Store(str(tmp_path))
    views = [ViewsRef(key=key(number)) for number in (1, 2)]
    for ref in views:
        with store.draft(ref, WHY) as draft:
            draft.write(VIEWS)
    config = BootstrapConfig(seed=7)
    made = grouped(
        RunContext(store=str(tmp_path)), Sources(views=views[0], more={"a": (views[1],)}, config=config), "title"
    )
    fields = {"views": views[0], "more": {"a": (views[1],)}, "config": config, "title": "title"}
    assert made.key == artifact_key("grouped", "corpus", 3, fields)
    provenance = store.manifest(made).provenance
    assert {name: entry.key for name, entry in provenance.inputs.items()} == {"views": key(1), "more.a.0": key(2)}
    assert provenance.config["title"] == "title"
    assert provenance.config["config"]["seed"] == 7
    assert store.scan(made).collect()["text"].to_list() == ["title"]
