"""The command line: what it prints, and its exit codes."""

import json
import os
import subprocess
import sys
from importlib.metadata import version
from unittest.mock import patch

import polars as pl
import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows.cli.main import main
from flows.cli.settings import configured
from flows.cli.verbs import VERBS
from flows.pipeline import run
from models.objectives.contrastive_config import ContrastiveConfig
from storage.manifest import InputEntry, Provenance
from storage.refs import ArtifactRef, PairsRef, ViewsRef
from storage.schemas import CORPUS, PAIRS, TRANSLATIONS
from storage.store import Store
from tasks.site import Site
from tasks.stage.parts import Part, working_on
from tasks.stage.watch import planning

REF = ViewsRef(key=f"{7:064x}")


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("BSL_STORE", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    store = Store(str(tmp_path / "store"))
    with store.draft(REF, Provenance(stage_version=1, config={"seed": 3})) as draft:
        frame = pl.DataFrame({"sentence_id": [1], "method": ["original"], "text": ["A cat."]})
        draft.write(frame.cast({"sentence_id": pl.UInt64}))
    return store


def test_ls_names_every_artifact(store, capsys):
    assert main(["artifacts", "ls"]) == 0
    assert str(REF) in capsys.readouterr().out


def test_a_misspelt_kind_is_named_with_the_nearest(store, capsys):
    for words in (["ls", "chekpoint"], ["ls", "--kind", "chekpoint"], ["show", "chekpoint/latest"], ["show", "view/0"]):
        assert main(["artifacts", *words]) == 1
        said = capsys.readouterr()
        assert said.out == ""
        wrong, meant = ("view", "views") if words[-1] == "view/0" else ("chekpoint", "checkpoint")
        assert f"bsl: '{wrong}' is no kind of artifact, expected one of asset, " in said.err
        assert f"did you mean {meant}?" in said.err


def test_a_store_without_artifacts_is_said_with_its_address(store, tmp_path, capsys):
    assert main(["artifacts", "ls", "checkpoint"]) == 0
    assert capsys.readouterr().out.startswith(f"no checkpoint at {store.url}; ")
    missing = str(tmp_path / "misspelt")
    for action in ("ls", "verify"):
        assert main(["artifacts", action, "--store", missing]) == 0
        assert capsys.readouterr().out.startswith(f"no artifacts at {missing}; ")
    assert main(["artifacts", "ls", "--store", missing, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_show_takes_the_beginning_of_a_key(store, capsys):
    assert main(["artifacts", "show", "views/000"]) == 0
    out = capsys.readouterr().out
    assert '"seed": 3' in out
    assert "A cat." in out


def test_verify_fails_on_a_damaged_artifact(store, capsys):
    assert main(["artifacts", "verify"]) == 0
    part = next((store.local / REF.path).glob("*.parquet"))
    part.write_bytes(part.read_bytes()[:-1] + b"?")
    assert main(["artifacts", "verify"]) == 1
    assert f"DAMAGED {REF}" in capsys.readouterr().out


def test_verify_tells_newer_and_stale_from_damaged(store, capsys):
    made = InputEntry(kind="views", key=REF.key, digest="d" * 64)
    with store.draft(
        PairsRef(key=f"{8:064x}"), Provenance(stage_version=1, config={}, inputs={"views": made})
    ) as draft:
        draft.write(pl.DataFrame(schema=PAIRS))
    newer = store.local / "corpus" / f"{9:064x}" / "manifest.json"
    newer.parent.mkdir(parents=True)
    newer.write_text('{"format": 99}')
    assert main(["artifacts", "verify"]) == 0
    out = capsys.readouterr().out
    assert f"intact  {REF}\n" in out
    assert "stale   pairs/000000000000: pairs/000000000000: views/000000000000 has been made again" in out
    assert "newer   corpus/000000000000: " in out
    assert "upgrade bsl-pipeline" in out


def test_a_kind_that_the_store_alone_knows_is_listed(store, capsys):
    ref = ArtifactRef(kind="toys", key=f"{5:064x}")
    with store.draft(ref, Provenance(stage_version=1, config={})) as draft:
        (draft.folder / "toy.md").write_text("a toy")
    assert main(["artifacts", "ls", "toys"]) == 0
    assert str(ref) in capsys.readouterr().out


def test_parts_of_the_translation_memory_are_listed_and_shown(store, capsys):
    ref = ArtifactRef(kind="translations/0123abcd", key=f"{5:064x}")
    with store.draft(ref, Provenance(stage_version=1, config={"beam": 4})) as draft:
        draft.write(pl.DataFrame(schema=TRANSLATIONS))
    assert main(["artifacts", "ls", "translations"]) == 0
    assert str(ref) in capsys.readouterr().out
    assert main(["artifacts", "show", "translations/000"]) == 0
    assert '"beam": 4' in capsys.readouterr().out


def test_names_are_whole_for_people_and_programs(store, capsys):
    kind = f"translations/{'a' * 60}"
    ref = ArtifactRef(kind=kind, key=f"{5:064x}")
    with store.draft(ref, Provenance(stage="translate", stage_version=1, config={})) as draft:
        draft.write(pl.DataFrame(schema=TRANSLATIONS))
    assert main(["artifacts", "ls"]) == 0
    assert str(ref) in capsys.readouterr().out
    assert main(["artifacts", "ls", "--kind", "translations", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["artifact"], row["stage"], row["rows"]) == (ref.path, "translate", 0)
    assert main(["artifacts", "show", "views/latest"]) == 0
    assert f'"key": "{REF.key}"' in capsys.readouterr().out
    assert main(["artifacts", "show", "corpus/latest"]) == 1
    assert "holds no corpus, so none is the latest" in capsys.readouterr().err


def test_a_damaged_manifest_does_not_hide_the_others(store, capsys):
    (store.local / "views" / f"{8:064x}").mkdir()
    (store.local / "views" / f"{8:064x}" / "manifest.json").write_text("{")
    assert main(["artifacts", "ls"]) == 0
    assert str(REF) in capsys.readouterr().out


def test_gc_touches_nothing_without_delete(store, capsys):
    assert main(["artifacts", "gc", "--older-than", "0h"]) == 0
    assert "1 artifacts and 0 leftovers would go" in capsys.readouterr().out
    assert store.defect(REF) is None
    assert main(["artifacts", "gc", "--older-than", "0h", "--delete"]) == 0
    assert store.refs() == []


def test_export_and_its_refusals(store, tmp_path, capsys):
    assert main(["artifacts", "export", "views/0", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "manifest.json").exists()
    assert main(["artifacts", "export", "views/0", str(tmp_path / "out")]) == 1
    assert main(["artifacts", "export", "views/f", str(tmp_path / "other")]) == 1
    assert "fits nothing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (["run", "tinny"], "Did you mean 'tiny'?"),
        (["run", "tiny", "--set", "training.objective.momentun=1"], "did you mean 'momentum'?"),
        (["evaluate", "embedded:bert-mini", "--suite", "sts_17"], "did you mean 'sts17'?"),
        (["evaluate", "embedded:bert-mini", "--set", "stsb.epoch=1"], "stsb.epoch: no such field; did you mean"),
        (["evaluate", "embedded:bert-mini", "--cnn", "1,2"], "--cnn 1,2: expected odd numbers such as 1,3,5"),
        (
            ["run", "tiny", "--set", "training.lr=1e-3", "--set", "training.lr.peak=1"],
            "--set training.lr.peak=1 and --set training.lr=1e-3 contradict each other",
        ),
        (
            ["run", "tiny", "--set", "training.lr=1e-3", "--set", "training=5"],
            "--set training=5 and --set training.lr=1e-3 contradict each other",
        ),
        (
            ["run", "tiny", "--set", 'training={"lr": 1e-3}', "--set", "training=5"],
            '--set training=5 and --set training={"lr": 1e-3} contradict each other',
        ),
        (["artifacts", "gc", "--older-than", "soon"], "expected hours or days"),
        (["field", "own.txt", "--set", "helt=300"], "helt: no such field; did you mean 'held'?"),
        (["sweep", "tiny", "--over", "training.epoch=1"], "training.epoch: no such field; did you mean 'epochs'?"),
    ],
)
def test_calls_that_make_no_sense_end_with_2(store, capsys, monkeypatch, call, message):
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")  # never reached: the call is refused before
    assert main(call) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("verb", [["pools"], ["run", "tiny", "--json"], ["evaluate", "embedded:bert-mini"]])
def test_a_server_that_does_not_answer_is_said_in_a_line(store, capsys, monkeypatch, verb):
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:1/api"}):
        assert main(verb) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("bsl: Prefect server http://127.0.0.1:1/api does not answer (")


def test_settings_of_a_file_that_are_none_are_refused(tmp_path, capsys, monkeypatch):
    (tmp_path / "settings.json").write_text('{"evaluation": null}')
    monkeypatch.chdir(tmp_path)
    own = ["adapt", "own.txt", "--config", "settings.json"]
    assert main([*own, "--suite", "sts"]) == 2
    assert "evaluation is None, expected a JSON object of settings" in capsys.readouterr().err
    (tmp_path / "settings.json").write_text('{"evaluation":')
    assert main(own) == 2
    assert "--config settings.json: expected a JSON object of settings" in capsys.readouterr().err


@pytest.mark.parametrize("order", [1, -1])
def test_an_objective_and_its_field_are_set_together(order):
    settings = ["training.objective=contrastive", "training.objective.temperature=0.1"]
    objective = configured("tiny", settings[::order]).training.objective
    assert objective == ContrastiveConfig(temperature=0.1)


def test_a_missing_source_is_said_alone_before_a_run_starts(store, capsys, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")  # never reached
    assert main(["run", "tiny", "--set", 'ingest.sources=[{"path": "nowhere.txt"}]']) == 1
    out, err = capsys.readouterr()
    assert (out, err) == ("", "bsl: nowhere.txt: no such file or folder; correct the path\n")


@pytest.mark.parametrize(
    ("settings", "code", "told"),
    [
        ({"sets": ["embedded:stsb/dev", "sickr/test"]}, 0, ["ok", "set embedded:stsb/dev", "note", "set sickr/test"]),
        ({"sets": ["sickr/test"]}, 1, ["NO", "sets", "none of the sets can be had"]),
        ({"sets": ["embedded:stsb/dev"], "dev": "sickr/test"}, 1, ["NO", "dev set sickr/test"]),
        ({"sets": ["embedded:stsb/dev", "afs-10-fold"]}, 1, ["NO", "sets", "report/<key> --suite afs-10-fold"]),
    ],
)
def test_the_doctor_judges_sets_as_a_run_does(store, capsys, settings, code, told):
    changes = [f"--set=evaluation.{field}={json.dumps(value)}" for field, value in settings.items()]
    with patch.dict(os.environ):  # the command settles Prefect's variables for its process
        assert main(["doctor", "tiny", "--device", "cpu", *changes]) == code
    out = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert [part for part in told if part not in out] == []


def test_a_dry_run_lists_the_stages_and_runs_none(store, capsys):
    with patch.dict(os.environ):
        assert main(["run", "tiny-avg", "--device", "cpu", "--dry-run", "--json"]) == 0
    stages = json.loads(capsys.readouterr().out)
    assert {step["state"] for step in stages} == {"to make"}
    assert [step["stage"] for step in stages][:2] == ["ingest", "embed"]
    assert [str(ref) for ref in store.refs()] == [str(REF)]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["export", "embedded:bert-mini", "out", "--static", "--static-dims", "3"], "static_dims: Input should be"),
        (["run", "tiny", "--dry-run", "--processes", "0"], "processes (BSL_PROCESSES): Input should be"),
        (["adapt", "one.txt", "--suite", "nosuch"], "'nosuch' is no suite and no set"),
    ],
)
def test_an_option_that_is_refused_is_told_in_a_sentence(store, capsys, words, told):
    with patch.dict(os.environ):
        assert main(words) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"bsl: {told}")
    assert "pydantic" not in said


def test_a_part_is_listed_where_what_lies_before_is_there(store, capsys):
    part = ["--from", "views", "--until", "pairs"]  # of a recipe that trains nothing
    words = ["run", "tiny-avg", "--device", "cpu", "--dry-run", *part]
    with patch.dict(os.environ):
        assert main(words) == 1
        assert "this part begins after views and makes nothing that lies before" in capsys.readouterr().err
        with planning() as plan, working_on(Part(until="views")):
            run(configured("tiny-avg", []), Site(store=store.url, device="cpu"))
        with store.draft(plan[0].ref, Provenance(stage_version=1, config={})) as draft:
            draft.write(pl.DataFrame(schema=CORPUS))
        assert main(words) == 0
    assert capsys.readouterr().out == "0 stages, 0 to be made\n"


def test_alone_it_names_the_first_steps(capsys):
    assert main([]) == 0
    assert "bsl run tiny" in capsys.readouterr().out


def test_it_knows_its_version(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"bsl-pipeline {version('bsl-pipeline')}\n"


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_every_verb_explains_itself(verb, capsys):
    with pytest.raises(SystemExit, match="0"):
        main([verb.name, "--help"])
    assert f"usage: bsl {verb.name}" in capsys.readouterr().out


def test_recipes_are_listed_and_printed(capsys):
    assert main(["recipes"]) == 0
    assert "BSL-BERT (Tables 1 and 2)" in capsys.readouterr().out
    assert main(["recipes", "tiny"]) == 0
    assert '"embedded:bert-mini"' in capsys.readouterr().out


def test_the_command_starts_without_prefect_and_torch():
    """Help comes at once; and Prefect reads its settings when it is imported, before which a verb settles them."""
    libraries = {"prefect", "torch", "transformers", "polars", "pydantic", "rich"}
    code = f"import sys, flows.cli.main; print(sorted({libraries} & sys.modules.keys()))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


FORMS = {"artifacts": ("ls", "show", "verify", "gc", "export"), "assets": ("ls", "verify", "build")}
PEOPLE_ONLY = {"ui", "completion"}


@pytest.mark.parametrize("verb", [verb.name for verb in VERBS if verb.name not in PEOPLE_ONLY])
def test_every_verb_prints_json(verb, capsys):
    for form in FORMS.get(verb, ("",)):
        with pytest.raises(SystemExit) as left:
            main([verb, *filter(None, [form]), "--help"])
        assert left.value.code == 0
        assert "--json" in capsys.readouterr().out


@pytest.mark.parametrize("call", [["artifacts", "--debug", "gc"], ["artifacts", "gc", "--debug"]])
def test_debug_is_taken_behind_a_verb_and_behind_its_action(store, call):
    with pytest.raises(ValueError, match="expected hours or days"):
        main([*call, "--older-than", "soon"])
