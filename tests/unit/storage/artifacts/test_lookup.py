"""Lookup of artifacts by the names that users give them."""

import pytest

from bsl.storage.artifacts.lookup import find
from bsl.storage.artifacts.refs import ArtifactRef, CorpusRef, ReportRef
from bsl.storage.artifacts.store import Store
from bsl.storage.errors import ArtifactMissingError
from tests.corpora import publish
from tests.hostile import WHY, damage

FIRST, SECOND = ReportRef(key=f"{0xA1:064x}"), ReportRef(key=f"{0xB2:x}".ljust(64, "0"))


@pytest.fixture
def store(tmp_path):
    store = Store(str(tmp_path / "store"))
    for ref, run in ((FIRST, "flow-1"), (SECOND, "flow-2")):
        with store.draft(ref, WHY.model_copy(update={"run": run})) as draft:
            (draft.folder / "report.md").write_text(run)
    return store


def test_latest_finds_the_newest_artifact_of_its_kind(store):
    assert find(store, "report/latest") == find(store, "latest")
    assert find(store, "report/latest").path == SECOND.path
    with pytest.raises(ArtifactMissingError, match="contains no corpus"):
        find(store, "corpus/latest")


def test_find_prefers_a_whole_artifact_to_its_shards(store):
    shard, whole = (ArtifactRef(kind=kind, key=f"{0xC3:064x}") for kind in ("embeddings/shards", "embeddings"))
    for ref in (whole, shard):
        publish(store, ref, page=ref.kind)
    assert find(store, "embeddings/latest") == find(store, "embeddings/0000") == whole


def test_report_is_found_by_key_prefix_or_run_name(store):
    for text in ("b2", "flow-2", SECOND.key):
        assert find(store, f"report/{text}") == ArtifactRef(kind="report", key=SECOND.key)
    for text in ("flow", "0000000000000000000000000000000f", "", "report/b2"):
        with pytest.raises(ArtifactMissingError, match=r"expected the key of one artifact\. List them"):
            find(store, f"report/{text}")


def test_artifact_digest_ignores_html_pages(store):
    """Otherwise equal runs would differ, and every artifact made from one would be recomputed."""
    refs = [CorpusRef(key=f"{number:064x}") for number in range(3)]
    for ref, page, html in zip(refs, ("same", "same", "other"), ("9 s", "8 s", "8 s"), strict=True):
        with store.draft(ref, WHY) as draft:
            (draft.folder / "page.md").write_text(page)
            (draft.folder / "page.html").write_text(html)
    digests = [store.manifest(ref).digest for ref in refs]
    assert digests[0] == digests[1] != digests[2]
    (store.local / refs[0].path / "page.html").write_text("7 s")
    assert damage(store, refs[0]) is not None
