"""Pages of the Prefect UI: no two artifacts of a run share a key, and every link leads to an existing page."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from prefect.runtime import flow_run
from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_RETRY_EXTRA_CODES, temporary_settings

from bsl.storage.artifacts.manifest import Provenance
from bsl.storage.artifacts.refs import ArtifactRef
from bsl.tasks.rendering.blocks import Charts, Page, Part, Prose
from bsl.tasks.rendering.svg import Chart
from bsl.tasks.stage import ui as page
from bsl.tasks.stage.ui import key_of, lineage_of, title_of

LETTERS = iter(range(1, 256))


@pytest.fixture
def told(monkeypatch):
    """Return a function that sets the flow and the parameters of the current flow run."""

    def tell(flow, **parameters):
        monkeypatch.setitem(vars(flow_run), "flow_name", flow)
        monkeypatch.setitem(vars(flow_run), "parameters", parameters)

    return tell


def made(store, kind, stage, *inputs, run="this", **config):
    """Publish an artifact of a stage, and return its manifest."""
    entries = {f"{i}": {"kind": one.kind, "key": one.key, "digest": one.digest} for i, one in enumerate(inputs)}
    provenance = Provenance(stage=stage, stage_version=1, config=config, inputs=entries, run=run)
    ref = ArtifactRef(kind=kind, key=f"{next(LETTERS):02x}" * 32)
    with store.draft(ref, provenance) as draft:
        (draft.folder / "said.txt").write_text(stage)
    return store.manifest(ref)


def test_artifacts_of_a_run_have_unique_page_keys(store, told):
    told("bsl-pipeline", recipe_name="sbert-nli-stsb")
    run = [
        *(made(store, "pairs", stage) for stage in ("pair_labelled", "pair", "pair")),
        *(made(store, "views", stage) for stage in ("mlm", "crop", "crop", "make_views")),
        *(made(store, "scores", stage, model="after BSL") for stage in ("score", "score", "score_transfer")),
        *(made(store, "comparison", "compare", names=["before", "after BSL"]) for _ in range(2)),
    ]
    keys = [key_of(manifest) for manifest in run]
    assert len(set(keys)) == len(keys)
    assert "sbert-nli-stsb-2-views" in keys
    assert [key for key in keys if key.startswith("sbert-nli-stsb-2-views-mlm-")]
    assert [key for key in keys if key.startswith("sbert-nli-stsb-7-scores-score-transfer-after-bsl-")]
    told("bsl-sweep", name="momentum")
    keys = {key_of(made(store, kind, "train")) for kind in ("checkpoint", "report") for _ in range(2)}
    assert len(keys) == 4
    assert key_of(made(store, "sweep", "compare_systems")) == "momentum-9-sweep"


@pytest.mark.parametrize(
    ("flow", "kind"), [("pipeline", "report"), ("evaluate", "evaluation"), ("sweep", "sweep"), ("adapt", "report")]
)
def test_page_links_to_the_final_page_of_its_flow(store, told, flow, kind):
    told(f"bsl-{flow}")
    end = key_of(made(store, kind, kind))
    assert end == f"{flow}-9-{kind}"
    assert f"Leads to [{end}](/artifacts/key/{end})" in lineage_of(store, made(store, "scores", "score"))


def test_page_links_only_to_pages_of_the_same_run(store, told):
    told("bsl-pipeline", recipe_name="tiny")
    found = made(store, "corpus", "ingest", run="another")
    part = made(store, "views", "synonym", found)
    joined = made(store, "views", "make_views", found, part)
    assert title_of(joined, "Join.\nMore.") == "# views · tiny\n\nJoin."
    said = lineage_of(store, joined)
    key = key_of(part)
    assert f"Made from `{found.ref}` · [{key}](/artifacts/key/{key}) `{part.ref}`" in said
    assert "tiny-1-corpus" not in said
    pretrained = made(store, "embeddings", "embed", encoder={"identity": f"embedded:mini@{0xAB:064x}"})
    assert f"Made from `embedded:mini@{'0' * 12}`" in lineage_of(store, pretrained)


def test_page_of_a_report_replaces_title_and_blocks():
    blocks = [Prose("A sample"), Charts([Chart("curve", "A curve", "<svg></svg>")])]
    assert page.StagePage(blocks).text("# views · tiny") == "# views · tiny\n\nA sample"
    assert [chart.name for chart in page.StagePage(blocks).charts] == ["curve"]
    report = Page("tiny: a run", "BETTER", "than the start", [Prose("The page: `file`")], [Part("Scores", blocks)])
    text = page.StagePage(blocks, report).text("# report · tiny")
    assert text == "# tiny: a run\n\n**BETTER** than the start\n\nThe page: `file`\n\n## Scores\n\nA sample"
    assert page.StagePage(blocks, report).charts == []


class Failing(BaseHTTPRequestHandler):
    """Prefect's server while its database is gone."""

    def do_POST(self):
        self.server.asked += 1
        self.send_response(self.server.status)
        self.end_headers()

    do_GET = do_POST  # the client asks for the version first

    def log_message(self, *_):
        pass


@pytest.fixture
def failing(monkeypatch, told):
    """Start a server that answers every request with the same status."""
    told("bsl-pipeline", recipe_name="tiny")
    monkeypatch.setattr(page, "in_run", lambda: True)
    monkeypatch.setattr(page, "_paused_until", 0.0)
    with ThreadingHTTPServer(("127.0.0.1", 0), Failing) as server:
        server.asked, server.status = 0, 500
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/api"
        with temporary_settings({PREFECT_API_URL: address, PREFECT_CLIENT_RETRY_EXTRA_CODES: ""}):  # else minutes pass
            yield server
        server.shutdown()


@pytest.mark.filterwarnings("ignore:Artifact creation outside")
@pytest.mark.parametrize(("status", "is_paused"), [(500, True), (413, False)])
def test_failed_server_pauses_pages_and_a_refused_page_does_not(store, failing, caplog, status, is_paused):
    failing.status, asked = status, []
    refs = [made(store, "pairs", "pair").ref, made(store, "views", "make_views").ref]
    for ref in refs:
        page.StagePage().publish(store, ref, "Makes something.")
        asked.append(failing.asked)
    assert (0 < asked[0] == asked[1]) == is_paused
    warned = [line for line in caplog.messages if "the run continues" in line]
    assert [line.partition(":")[0] for line in warned] == [f"page of {ref}" for ref in refs[: 1 if is_paused else 2]]
    assert all(("nothing is shown for the next 30 minutes" in line) == is_paused for line in warned)
