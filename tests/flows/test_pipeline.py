"""The whole pipeline runs with all stages of `tiny`, at a smaller size."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from bsl.flows.cli.main import main
from bsl.flows.cli.terminal.overrides import configured
from bsl.flows.config import override
from bsl.flows.pipeline import pipeline, run
from bsl.flows.recipes import recipe
from bsl.models.errors import TrainingError
from bsl.storage.artifacts.store import Store
from bsl.tasks.evaluation.kinds import UnknownSuiteError
from bsl.tasks.figures import ResultFigures
from bsl.tasks.stage.run_context import RunContext
from docs.build import GUIDES, ROOT
from tests.documents import commands

HERE = Path(__file__).parent
BEFORE, AFTER = "before BSL + in-batch negatives (mean)", "after BSL + in-batch negatives"
QUICK = {"search", "pairs", "embed", "artifacts", "assets", "recipes"}  # run here; other commands have tests elsewhere
TEXTS = ("An invitation to dinner.", "Dogs run in the snow.", "A dog is out in winter.", "The shop opens at nine.")
KILLED_IN = "corpus,translations,views,pairs,training,checkpoint,embeddings,scores,comparison,report"


def run_apart(store, kinds, small, environment):
    """Run in separate processes, as users do: other tests change torch's state in this process."""
    command = [sys.executable, str(HERE / "run_and_die.py"), store, kinds, json.dumps(small)]
    process = subprocess.run(command, env={**environment, "PYTHONPATH": str(HERE.parents[1])}, capture_output=True)
    assert process.returncode == 0, process.stderr.decode()[-2000:]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, small):
    store = Store(str(tmp_path_factory.mktemp("undisturbed") / "store"))
    return store, pipeline("tiny", small, RunContext(store=store.url, save_every=2))


def test_report_contains_scores_settings_and_charts(undisturbed, encoder):
    store, ref = undisturbed
    folder = store.fetch(ref)
    assert f"| {AFTER} | {BEFORE} | stsb test |" in (folder / "report.md").read_text()
    figures = store.manifest(ref).figures_as(ResultFigures)
    assert figures.draws is not None  # tables print the smallest p of so many draws as a bound, as in `bsl evaluate`
    assert (folder / "curve-loss.svg").read_text().startswith("<svg ")
    html = (folder / "report.html").read_text()
    assert "<dd>0 made" not in html
    assert " made, 0 cached<" in html
    assert "bsl run tiny --set ingest.corpus.limit=96 --set " in html
    assert f" --set encoder.model={encoder['model']} " in html
    # Another encoder and other text than the recipe's, which its title would name.
    assert "<h1>tiny, changed: BSL + in-batch negatives on embedded:nli-sample</h1>" in html
    assert html.count("<svg") == 1 + 5 + 3 * 2
    assert {*store.scan(ref, "scores").collect()["model"]} == {"Unigram TF-IDF", BEFORE, AFTER}


def test_pipeline_publishes_every_artifact_kind_without_defects(undisturbed):
    store, _ = undisturbed
    assert {ref.kind.partition("/")[0] for ref in store.refs()} == {*KILLED_IN.split(",")} - {"training"}
    assert [store.defect(ref) for ref in store.refs()] == [None] * len(store.refs())


def test_run_rejects_fine_tuning_suite_before_it_starts():
    changed = configured("tiny", ['evaluation.sets=["embedded:stsb/test", "stsb-supervised"]'])
    with pytest.raises(UnknownSuiteError, match="contains stsb-supervised: fine-tuning takes hours"):
        run(changed, RunContext())


def test_objective_that_cannot_train_the_encoder_is_refused_before_translation(tmp_path, small):
    store = Store(str(tmp_path / "store"))
    objective = {**small["training"].get("objective", {}), "dims": [10_000]}
    changed = override(recipe("tiny"), {**small, "training": {**small["training"], "objective": objective}})
    with pytest.raises(TrainingError, match=r"dims contains \[10000\], expected numbers below the encoder's width"):
        run(changed, RunContext(store=store.url))
    assert {ref.kind for ref in store.refs()} == {"corpus"}


def test_second_run_is_cached_and_publishes_no_artifact(undisturbed, small, contents, caplog):
    store, ref = undisturbed
    before = contents(store)
    with caplog.at_level("INFO", logger="prefect.task_runs"):
        assert pipeline("tiny", small, RunContext(store=store.url)) == ref
    tasks = [record.message for record in caplog.records if record.name == "prefect.task_runs"]
    finished = [message for message in tasks if "Finished in state" in message]
    assert finished
    assert all("Cached" in message for message in finished)
    assert contents(store) == before


@pytest.mark.slow
def test_run_killed_in_every_stage_ends_with_identical_artifacts(small, environment, contents, tmp_path):
    killed, whole = (Store(str(tmp_path / name)) for name in ("killed", "whole"))
    run_apart(killed.url, f"{KILLED_IN},", small, environment)
    run_apart(whole.url, "", small, environment)
    assert contents(killed) == contents(whole)


def told():
    """Return the commands that README and guides suggest after a run, except exports and deletions."""
    pages = [ROOT / "README.md", *(ROOT / "docs" / f"{guide}.md" for guide in GUIDES)]
    lines = [shlex.join(words) for page in pages for words in commands(page) if words[0] == "bsl" and words[1] in QUICK]
    left_out = ("--onnx", "evaluation/", "artifacts delete")
    return [line for line in dict.fromkeys(lines) if not any(words in line for words in left_out)]


@pytest.fixture
def place(undisturbed, tmp_path, monkeypatch):
    """Return a folder with the file names that documents use, with BSL_STORE set to the store of a run."""
    (tmp_path / "letters").mkdir()
    for name in ("sentences.txt", "letters/first.txt"):
        (tmp_path / name).write_text("\n".join(TEXTS), encoding="utf-8")
    (tmp_path / "sentences.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in TEXTS), encoding="utf-8")
    pl.DataFrame({"id": range(len(TEXTS)), "body": list(TEXTS)}).write_csv(tmp_path / "tickets.csv")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BSL_STORE", undisturbed[0].url)


@pytest.mark.parametrize("line", told())
def test_commands_in_the_documents_exit_with_zero(undisturbed, place, line):
    store, _ = undisturbed
    # The keys in documents are invented: replace them by an artifact of the same kind.
    made = {ref.kind: ref.path for ref in store.refs()}
    words = [made.get(word.partition("/")[0], word) if "/" in word else word for word in shlex.split(line)]
    assert main(words[1:]) == 0
