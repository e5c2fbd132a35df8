"""A run cut into parts leaves what a whole one leaves; a part makes nothing that lies before it."""

import pytest

from flows.pipeline import pipeline
from flows.telling import tell
from storage.errors import ArtifactMissingError
from storage.refs import ArtifactRef
from storage.store import Store
from tasks.site import Site
from tasks.stage.parts import Part, passed, working_on


@pytest.fixture(scope="module")
def whole(tmp_path_factory, alone):
    store = Store(str(tmp_path_factory.mktemp("whole") / "store"))
    pipeline("tiny", alone, Site(store=store.url, device="cpu", threads=1))
    return store


def test_parts_leave_what_a_whole_run_leaves(tmp_path, alone, whole, contents):
    store = Store(str(tmp_path / "store"))
    site = Site(store=store.url, device="cpu", threads=1)
    kinds = []
    for start, until in [(None, "corpus"), ("corpus", "pairs"), ("pairs", "embeddings")]:
        made = pipeline("tiny", alone, site, start, until)
        assert {ref.kind for ref in made} == {until}
        kinds.append({ref.kind for ref in store.refs()})
    assert [{"views", "pairs"} <= there for there in kinds] == [False, True, True]
    assert [{"checkpoint", "embeddings"} <= there for there in kinds] == [False, False, True]
    assert "scores" not in kinds[-1]
    report = pipeline("tiny", alone, site, "embeddings")
    assert report.path == whole.refs("report")[0].path
    assert contents(store) == contents(whole)


def test_a_part_makes_nothing_that_lies_before_it(tmp_path, alone):
    site = Site(store=str(tmp_path / "store"), device="cpu")
    with pytest.raises(ArtifactMissingError, match="makes nothing that lies before"):
        pipeline("tiny", alone, site, "pairs")
    assert Store(site.store).refs() == []


def test_a_part_goes_on_from_what_it_is_told(tmp_path, alone, whole):
    """Whatever this machine would have called it."""
    told = [whole.refs(kind)[0] for kind in ("corpus", "views")]
    other = {**alone, "ingest": {"corpus": {"limit": 95}}}  # whose own corpus is not there
    site = Site(store=whole.url, device="cpu", threads=1)
    (pairs,) = pipeline("tiny", other, site, "views", "pairs", told)
    assert pairs.path == whole.refs("pairs")[0].path
    with pytest.raises(ArtifactMissingError, match="none of which is its views"):
        pipeline("tiny", other, site, "views", "pairs", told[:1])


def test_a_part_without_a_stage_is_refused():
    with pytest.raises(ValueError, match="from pairs until views: nothing lies between"):
        Part("pairs", "views")


def test_the_event_of_a_part_names_what_the_next_one_needs(alone, whole, monkeypatch):
    sent = []
    monkeypatch.setattr("flows.telling.emit_event", lambda event, **said: sent.append((event, said)))
    pipeline("tiny", alone, Site(store=whole.url, device="cpu", threads=1), "corpus", "pairs")
    ((event, said),) = sent
    assert event == "bsl.pairs.published"
    assert said["resource"]["bsl.deployment"] == ""
    assert said["payload"]["site"] == {"store": whole.url}
    assert said["payload"]["overrides"]["ingest"] == alone["ingest"]
    assert [made["kind"] for made in said["payload"]["made"]] == ["corpus", "views", "pairs"]


def test_the_event_s_addresses_hold_in_any_folder(tmp_path, monkeypatch):
    sent = []
    monkeypatch.setattr("flows.telling.emit_event", lambda _, **said: sent.append(said["payload"]["site"]))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mirror").mkdir()
    for site in (Site(store="store", mirror="mirror", device="cuda:1", cache="cache"), Site(device="cpu"), None):
        tell(Part(until="views"), "tiny", None, site)
    assert sent == [{"store": str(tmp_path / "store"), "mirror": str(tmp_path / "mirror")}, {}, None]


def test_cuts_are_passed_in_their_order():
    part = Part(until="views")
    with working_on(part):
        assert part.makes
        passed("corpus")
        passed("views")
        assert not part.makes
        ref = ArtifactRef(kind="pairs", key="0" * 64)
        assert part.outside(Site(), "pair", ref) == ref
