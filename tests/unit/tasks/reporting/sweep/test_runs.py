"""Runs are compared setting by setting."""

from bsl.flows.recipes import recipe
from bsl.storage.artifacts.keys import canonical
from bsl.storage.artifacts.manifest import Provenance
from bsl.storage.artifacts.refs import ReportRef
from bsl.storage.artifacts.store import Store
from bsl.storage.sources.sources import SourceSpec
from bsl.tasks.reporting.sweep.runs import dev_of, differing, settings_of
from bsl.tasks.settings import RunSettings


def test_differing_settings_are_rows_with_dashes_for_missing_fields():
    first = {"training": {"lr": 0.001, "objective": {"name": "bsl", "momentum": 0.9}}, "sets": ["a"], "empty": {}}
    second = {"training": {"lr": 0.002, "objective": {"name": "simcse"}}, "sets": ["a"], "empty": {}}
    assert differing({"A": first, "B": second}) == [
        {"field": "training.lr", "A": "0.001", "B": "0.002"},
        {"field": "training.objective.name", "A": "bsl", "B": "simcse"},
        {"field": "training.objective.momentum", "A": "0.9", "B": "–"},
    ]
    assert differing({"A": first, "B": first}) == []


def test_differing_list_items_are_compared_by_index():
    first = {"sets": ["sts12", "stsb/test"], "hops": [{"model": "one", "beam": 2, "revision": None}], "earlier": []}
    second = {"sets": ["stsb/test"], "hops": [{"model": "one", "beam": 4}, {"model": "two"}], "earlier": None}
    assert differing({"A": first, "B": second}) == [
        {"field": "sets", "A": "sts12, stsb/test", "B": "stsb/test"},
        {"field": "hops[0].beam", "A": "2", "B": "4"},
        {"field": "hops[1].model", "A": "–", "B": "two"},
    ]


def settings_in(store: Store, letter: str, beam: int, *sources: SourceSpec) -> dict:
    """Publish a report of `tiny` with some changed settings, and return the settings in its manifest."""
    asked = recipe("tiny").settings.model_dump()
    asked["augment"]["translations"][0]["hops"][0]["beam"] = beam
    config = canonical({"settings": RunSettings.model_validate(asked), "sources": sources})
    ref = ReportRef(key=letter * 64)
    with store.draft(ref, Provenance(stage="report", stage_version=1, config=config)) as draft:
        (draft.folder / "report.md").write_text("a page")
    return settings_of(store.manifest(ref))


def test_differing_report_settings_list_beam_sources_and_dev_set(tmp_path):
    store = Store(str(tmp_path))
    first = settings_in(store, "a", 2, SourceSpec(dataset="snli"))
    second = settings_in(store, "b", 4, SourceSpec(path="mine.csv"), SourceSpec(dataset="multi_nli"))
    assert differing({"A": first, "B": second}) == [
        {"field": "augment.translations[0].hops[0].beam", "A": "2", "B": "4"},
        {"field": "ingest.sources[0].dataset", "A": "snli", "B": "–"},
        {"field": "ingest.sources[0].path", "A": "–", "B": "mine.csv"},
        {"field": "ingest.sources[1].dataset", "A": "–", "B": "multi_nli"},
    ]
    assert dev_of(first) == "stsb/dev"
    assert dev_of({**first, "training": None}) == ""
    assert dev_of({**first, "training": {**first["training"], "select": "last"}}) == ""
    assert dev_of({**first, "training": None, "earlier": [{"training": first["training"]}]}) == "stsb/dev"
