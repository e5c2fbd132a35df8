"""Commands choose the Prefect server before Prefect is imported."""

import json
import subprocess
import sys

from bsl.flows.recipes import recipe
from bsl.storage.artifacts.keys import canonical
from bsl.storage.artifacts.manifest import Provenance
from bsl.storage.artifacts.refs import ReportRef

CODE = """
import json, sys
from bsl.flows.cli.main import main
from bsl.flows.prefect_server import server

found = []
def use_server():
    found.append("prefect" in sys.modules)
    raise ValueError
server.use_server = use_server
for call in json.load(sys.stdin):
    main(call)
print(json.dumps(found))
"""


def test_commands_do_not_import_prefect_before_they_choose_its_server(tmp_path, site):
    store, reports = site.open_store(), [ReportRef(key=letter * 64) for letter in "ab"]
    config = canonical({"title": "t", "settings": recipe("tiny").settings})
    for ref in reports:
        with store.draft(ref, Provenance(stage="report", stage_version=1, config=config)) as draft:
            (draft.folder / "report.md").write_text("a page")
    text = tmp_path / "own.txt"
    text.write_text("A dog runs across a field of snow.\n")
    calls = [
        ["compare", *(ref.path for ref in reports), "--store", store.url],
        ["evaluate", "embedded:mini-sentence", "--suite", "stsb/dev"],
        ["run", "tiny"],
        ["adapt", str(text)],
        ["sweep", "tiny", "--over", "training.lr=1e-4,1e-3"],
        ["sweep", "own", "--text", str(text)],
        ["reproduce", "BSL-BERT"],
    ]
    ended = subprocess.run(
        [sys.executable, "-c", CODE], input=json.dumps(calls), capture_output=True, text=True, check=True
    )
    assert json.loads(ended.stdout.splitlines()[-1]) == [False] * len(calls), ended.stderr
