"""Runs are compared setting by setting; sets that selected an encoder are no test sets of a sweep."""

import pytest

from bsl.flows.config import override
from bsl.flows.recipes import recipe
from bsl.storage.artifacts.keys import canonical
from bsl.storage.artifacts.manifest import Provenance
from bsl.storage.artifacts.refs import ReportRef
from bsl.storage.errors import ArtifactMissingError
from bsl.storage.sources.sources import SourceSpec
from bsl.tasks.evaluation.kinds import available
from bsl.tasks.reporting.sweep.runs import (
    dev_of,
    differing,
    run_names,
    run_systems,
    settings_of,
    without_dev_sets,
)
from bsl.tasks.settings import RunSettings

ONE, TWO = {"model": "one", "beam": 2, "revision": None}, {"model": "two"}
DIFFERENCES = {
    "fields": (
        {"lr": 0.001, "objective": {"name": "bsl", "momentum": 0.9}, "sets": ["a"], "empty": {}},
        {"lr": 0.002, "objective": {"name": "simcse"}, "sets": ["a"], "empty": {}},
        [("lr", "0.001", "0.002"), ("objective.name", "bsl", "simcse"), ("objective.momentum", "0.9", "–")],
    ),
    "lists": (
        {"sets": ["sts12", "stsb/test"], "hops": [ONE], "earlier": []},
        {"sets": ["stsb/test"], "hops": [{"model": "one", "beam": 4}, TWO], "earlier": None},
        [("sets", "sts12, stsb/test", "stsb/test"), ("hops[0].beam", "2", "4"), ("hops[1].model", "–", "two")],
    ),
    "none": ({"sets": ["a"]}, {"sets": ["a"]}, []),
}


@pytest.mark.parametrize(("first", "second", "rows"), DIFFERENCES.values(), ids=DIFFERENCES)
def test_differing_settings_are_rows_with_dashes_for_missing_fields(first, second, rows):
    assert differing({"A": first, "B": second}) == [{"field": name, "A": a, "B": b} for name, a, b in rows]


def report_of(store, settings, stage="report", **config):
    """Write a report that names no vectors."""
    ref = ReportRef(key="a" * 64)
    given = canonical({"settings": RunSettings.model_validate(settings.model_dump()), "title": "t", **config})
    with store.draft(ref, Provenance(stage=stage, stage_version=1, config=given)) as draft:
        (draft.folder / "report.md").write_text("a page")
    return ref


def test_run_with_a_transform_of_each_set_is_not_compared_as_its_untransformed_encoder(site):
    store = site.open_store()
    ref = report_of(store, recipe("tiny-whitening-target").settings)
    with pytest.raises(
        ArtifactMissingError, match=r"transform_on=targets.*Run its recipe with --set transform_on=corpus"
    ):
        run_systems(store, [ref])


def test_report_has_the_sources_and_the_dev_set_of_its_run(site):
    store, sources = site.open_store(), (SourceSpec(path="mine.csv"), SourceSpec(dataset="multi_nli"))
    ref = report_of(store, recipe("tiny").settings, stage="adaptation", sources=sources)
    found = settings_of(store.manifest(ref))
    assert [source["path"] or source["dataset"] for source in found["ingest"]["sources"]] == ["mine.csv", "multi_nli"]
    assert dev_of(found) == "stsb/dev"
    assert dev_of({**found, "training": None}) == ""
    assert dev_of({**found, "training": {**found["training"], "select": "last"}}) == ""
    assert dev_of({**found, "training": None, "earlier": [{"training": found["training"]}]}) == "stsb/dev"
    with pytest.raises(ArtifactMissingError):
        run_names(store, [ref])


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
