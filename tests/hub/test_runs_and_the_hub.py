"""Runs, evaluations, mirrors and doctor use the Hub: no result changes silently, no request is made twice."""

import time

import pytest

from bsl.flows.cli.main import main
from bsl.flows.cli.terminal.overrides import configured
from bsl.storage.artifacts.keys import artifact_key
from bsl.storage.errors import HubError
from bsl.storage.sources.mirror import fill_cache
from bsl.storage.sources.model_sources import resolve_model
from bsl.storage.sources.read import check_columns
from bsl.storage.sources.sources import SourceSpec, resolve_source
from bsl.tasks.corpus.evaluation_sets import rows_of
from bsl.tasks.diagnostics.doctor import examine
from bsl.tasks.evaluation.kinds import available
from bsl.tasks.stage.cluster import found_here
from bsl.tasks.stage.run_context import RunContext
from tests.hub.client import offline, use
from tests.hub.repositories import model_files, publish, publish_nli, publish_sts
from tests.toy_sets import write_files

BERT = "google-bert/bert-base-uncased"
SETS = ("sts16/test", "sts17-en-de/test")


@pytest.fixture
def site(tmp_path):
    rows_of.cache_clear()  # an earlier test has read sets of the same commits
    return RunContext(store=str(tmp_path / "store"), device="cpu")


def look(config, site):
    return {check.subject: check for check in examine(site, config)}


def test_hub_error_raises_instead_of_dropping_an_evaluation_set(hub, site):
    publish_sts(hub, ["sts16", "sts17-en-de"])
    fault = hub.fail("sts16-sts", status=500)
    with pytest.raises(
        HubError, match=r"mteb/sts16-sts@4d8694f\w*: the Hub returned an error \(500\)\. Run again later"
    ):
        available(site, SETS)
    hub.faults.remove(fault)
    found = available(site, [*SETS, "stsb-mt/test"])
    assert tuple(found.sets) == SETS
    assert "'stsb-mt' was not found: no mirror is set, and the Hub has no copy" in found.missing["stsb-mt/test"]


def test_cached_evaluation_sets_are_read_offline_and_others_are_missing(hub, site, monkeypatch):
    publish_sts(hub, ["sts16", "sts17-en-de"])
    first = available(site, SETS[:1]).sets[SETS[0]].read()["test"]
    for cut_off in (hub.stop, lambda: offline(monkeypatch)):
        cut_off()
        rows_of.cache_clear()
        assert available(site, SETS[:1]).sets[SETS[0]].read()["test"].equals(first)
    found = available(site, SETS)
    assert tuple(found.sets) == SETS[:1]
    assert "is not in the cache, and HF_HUB_OFFLINE forbids requests to the Hub" in found.missing[SETS[1]]
    assert len(hub.requests("HEAD .*sts16-sts/resolve/.*jsonl")) == 1


def test_hub_and_mirrored_cache_give_the_same_artifact_key(hub, site, tmp_path, monkeypatch):
    publish_nli(hub)
    publish_sts(hub, ["sts16", "sts17-en-de"])
    publish(hub, [(BERT, None)])
    specs = [SourceSpec(dataset="snli"), SourceSpec(dataset="multi_nli")]

    def key():
        sources, model = [resolve_source(spec) for spec in specs], resolve_model(BERT)
        return artifact_key("x", "x", 1, {"s": sources, "m": model, "e": list(available(site, SETS).sets.values())})

    from_the_hub = key()
    folder = tmp_path / "mirror"
    for name in ("snli/train", "multi_nli/train", "sts16", "sts17-en-de", f"model:{BERT}"):
        assert [how for _, how in fill_cache(folder, name)] == ["written"]
    asked = len(hub.requests("resolve|cdn"))
    use(hub, folder, monkeypatch)
    offline(monkeypatch)
    rows_of.cache_clear()
    assert key() == from_the_hub
    assert (resolve_model(BERT).folder / "model.safetensors").is_file()
    check_columns(resolve_source(specs[0]))
    assert len(hub.requests("resolve|cdn")) == asked


def test_doctor_reports_unreachable_hub_fast_with_one_remedy_for_models_and_one_for_datasets(hub, site, capsys):
    hub.stop()
    config = configured("nli", [])
    started = time.monotonic()
    checks = look(config, site)
    assert time.monotonic() - started < 30
    for subject in ("source snli", f"encoder {BERT}", "set sts12/test", "dev set stsb/dev"):
        assert (checks[subject].verdict, "does not answer" in checks[subject].found) == ("NO", True)
    assert checks["set sickr/test"].verdict == "NO"
    assert main(["doctor", "nli", "--store", site.store, "--device", "cpu"]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert out.count("run again later") == 2
    assert out.count("bsl mirror FOLDER model:NAME") == out.count("bsl mirror FOLDER NAME") == 1


def test_doctor_accepts_cached_models_and_datasets_offline(hub, site, monkeypatch):
    publish(hub, [("sentence-transformers/bert-base-nli-mean-tokens", None)])
    publish_nli(hub)
    publish_sts(hub, ["sts16", "stsb"])
    config = configured("sbert", ['evaluation.sets=["sts16"]'])
    for source in ("on the Hub", "columns premise, hypothesis"):
        checks = look(config, site)
        assert "vectors of width 32" in checks[f"encoder {config.encoder.model}"].found
        assert source in checks["source snli"].found
        assert [check for check in checks.values() if check.verdict == "NO"] == []
        assert resolve_model(config.encoder.model).folder.is_dir()
        for spec in config.ingest.sources:
            check_columns(resolve_source(spec))
        offline(monkeypatch)


def test_doctor_reports_missing_columns_and_unloadable_models(hub, site, tmp_path):
    (tmp_path / "pairs.csv").write_text("first,second\na,b\n")
    files = model_files(BERT)
    names = ("config.json", "tokenizer.json", "tokenizer_config.json")
    write_files(tmp_path / "model", {name: files[name] for name in names})
    sources = f'ingest.sources=[{{"path":"{tmp_path}/pairs.csv","columns":["frist"]}}]'
    config = configured("tiny", [sources, f"encoder.model={tmp_path}/model"])
    checks = look(config, site)
    assert "column 'frist' is missing" in checks[f"source {tmp_path}/pairs.csv"].found
    assert "cannot be loaded" in checks[f"encoder {tmp_path}/model"].found
    assert {checks[f"source {tmp_path}/pairs.csv"].verdict, checks[f"encoder {tmp_path}/model"].verdict} == {"NO"}


def test_worker_with_its_own_cache_reads_the_hub_cache(hub, tmp_path, monkeypatch):
    publish(hub, [(BERT, None)])
    sent = resolve_model(BERT)
    folder = sent.folder
    offline(monkeypatch)
    assert found_here(RunContext(cache=str(tmp_path / "copies")), sent).folder == folder
