"""Stage `ingest` publishes a corpus, and caches it by content, and shows it in the UI."""

import json

import pytest
from prefect import flow
from prefect.client.orchestration import get_client

from bsl.models.corpus.corpus import CorpusConfig
from bsl.models.corpus.normalize import NormalizeConfig
from bsl.storage.artifacts.refs import CorpusRef
from bsl.storage.errors import SourceError
from bsl.storage.sources.sources import SourceSpec
from bsl.tasks.corpus.config import IngestConfig
from bsl.tasks.corpus.ingest import ingest, locate_sources
from bsl.tasks.stage.run_context import RunContext

ROWS = [
    {"gold_label": "entailment", "sentence1": "A  man is dancing.", "sentence2": "A man dances."},
    {"gold_label": "neutral", "sentence1": "A man is dancing. ", "sentence2": "He is\x00 happy."},
    {"gold_label": "-", "sentence1": "Nobody agreed.", "sentence2": "On this."},
]


@flow
def only_ingest(site: RunContext, config: IngestConfig) -> CorpusRef:
    return ingest(site, locate_sources(site, config), config)


@pytest.fixture
def site(tmp_path):
    return RunContext(store=str(tmp_path / "store"))


def source(tmp_path, folder, *more):
    (tmp_path / folder).mkdir()
    path = tmp_path / folder / "nli.jsonl"
    path.write_text("\n".join([*map(json.dumps, ROWS), *more]))
    return SourceSpec(path=str(path))


def test_ingest_publishes_corpus_figures_and_ui_page(site, tmp_path):
    config = IngestConfig(sources=(source(tmp_path, "here", '{"bad'),), max_bad_share=0.25)
    ref = only_ingest(site, config)
    store = site.open_store()
    assert set(store.scan(ref).collect().select("text", "source", "lang").rows()) == {
        ("A man is dancing.", "nli", "en"),
        ("A man dances.", "nli", "en"),
        ("He is happy.", "nli", "en"),
        ("Nobody agreed.", "nli", "en"),  # from a pair without a label
        ("On this.", "nli", "en"),
    }
    figures = store.manifest(ref).figures
    (counts,) = figures["sources"]
    assert (counts["records"], counts["unreadable"]) == (3, 1)
    assert counts["bad"][0]["line"] == 4
    assert figures["statistics"]["duplicates"] == 1
    with get_client(sync_client=True) as client:  # by HTTP: the server refuses nulls that the client's method sends
        asked = {"artifacts": {"key": {"any_": [f"only-ingest-1-corpus-{ref.key[:6]}"]}}}
        (page,) = client.request("POST", "/artifacts/latest/filter", json=asked).json()
    assert page["data"].startswith("# corpus · only-ingest\n\n")
    assert "5 unique sentences" in page["data"]
    assert "He is happy" in page["data"]
    assert not list((store.local / ".scratch").rglob("*.arrow"))


def test_moved_source_hits_the_cache_and_changed_source_misses(site, tmp_path):
    first = only_ingest(site, IngestConfig(sources=(source(tmp_path, "here"),)))
    state = only_ingest(site, IngestConfig(sources=(source(tmp_path, "there"),)), return_state=True)
    assert state.result() == first
    grown = only_ingest(site, IngestConfig(sources=(source(tmp_path, "grown", json.dumps(ROWS[0])),)))
    assert grown.key != first.key
    shorter = CorpusConfig(normalize=NormalizeConfig(max_chars=11))
    fewer = only_ingest(site, IngestConfig(sources=(SourceSpec(path=str(tmp_path / "here")),), corpus=shorter))
    assert site.open_store().scan(fewer).collect()["text"].to_list() == ["On this."]


def test_too_many_unreadable_records_publish_no_corpus(site, tmp_path):
    config = IngestConfig(sources=(source(tmp_path, "here", '{"bad'),))
    with pytest.raises(SourceError, match=r"1 of 4 records \(25\.00%\) cannot be read"):
        only_ingest(site, config)
    assert site.open_store().refs() == []


def test_sources_of_the_same_name_have_a_limit_each(site, tmp_path):
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "all.txt").write_text("\n".join(f"{folder} sentence {number}" for number in range(9)))
    (tmp_path / "second" / "all.csv").write_text("text\nsecond sentence of a table\n")
    sources = tuple(SourceSpec(path=str(tmp_path / name), name="all", limit=5) for name in ("first", "second"))
    texts = site.open_store().scan(only_ingest(site, IngestConfig(sources=sources))).collect()["text"]
    assert (len(texts), int(texts.str.starts_with("first").sum())) == (10, 5)  # formats of a source share its limit
