"""The command line prints the right output and exit codes."""

import errno
import importlib
import json
import os
import socket
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from unittest.mock import patch

import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from bsl.flows.cli.commands import COMMANDS
from bsl.flows.cli.main import app, main
from bsl.flows.cli.terminal.overrides import configured
from bsl.models.objectives.contrastive_config import ContrastiveConfig
from bsl.storage.artifacts.store import Store
from tests.every import every


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("BSL_STORE", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.txt").write_text("A cat sleeps.\n")
    return Store(str(tmp_path / "store"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (["run", "tinny"], "unknown recipe 'tinny'. Did you mean 'tiny'? `bsl recipes` lists all"),
        (
            ["run", "tiny", "--set", "training.objective.momentun=1"],
            "training.objective.momentun: unknown field. Did you mean 'momentum'?",
        ),
        (["adapt", "own.txt", "--set", "training.lrr=1"], "training.lrr: unknown field. Did you mean 'lr'?"),
        (["evaluate", "embedded:bert-mini", "--suite", "sts_17"], "Did you mean 'sts17'?"),
        (["evaluate", "embedded:bert-mini", "--set", "stsb.epoch=1"], "stsb.epoch: unknown field. Did you mean"),
        (["evaluate", "embedded:bert-mini", "--cnn", "1,2"], "--cnn 1,2: expected odd numbers such as 1,3,5"),
        (
            ["evaluate", "embedded:bert-mini", "--pooling", "cls+maen"],
            "reading.pooling: unknown pooling 'maen', expected",
        ),
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
        (["run", "tiny", "--set", "training.leraning_rate=1"], "unknown field. Did you mean 'lr'?"),
        (["adapt", "own.txt", "--views", "round trips"], '"round-trips"'),
        (["adapt", "own.txt", "--columns"], "--columns requires at least 1"),
        (["artifacts"], "artifacts: expected an action: ls, show, verify, gc, export"),
        (["artifacts", "lss"], 'Did you mean "ls"?'),
        (["run"], "RECIPE requires an argument; see `bsl run --help`"),
        (["ui", "--port", "x"], 'unable to convert "x" into int'),
        (
            ["sweep", "tiny", "--over", "training.precision=bf16", "--precision", "fp32"],
            "training.precision: --over varies the field",
        ),
        (
            ["sweep", "own", "--text", "own.txt", "--set", "ingest.own_text.hold_uot.limit=300"],
            "ingest.own_text.hold_uot: unknown field. Did you mean 'hold_out'?",
        ),
        (["sweep", "own"], "study own compares methods on your text. Name it: bsl sweep own --text FILE"),
        (["sweep", "own", "--labels", "own.txt"], "--labels: needs --text"),
        (
            ["sweep", "own", "--text", "own.txt", "--label-column", "queue"],
            "--label-column: names a column of labels, but no file of labels is given. Add --labels FILE",
        ),
        (["adapt", "own.txt", "--text-column", "body"], "--text-column: names a column of labels, but no file"),
        (
            ["evaluate", "embedded:bert-mini", "--label-column", "queue"],
            "--label-column: names a column of labels, but no file of labels is given. Add --suite labels:FILE",
        ),
        (["sweep", "tiny-batch", "--text", "own.txt"], "tiny-batch: only study own takes a text"),
        (["sweep", "tiny-batch", "--lang", "de"], "--lang: only study own reads your text"),
        (["sweep", "own", "--text", "own.txt", "--over", "variant=crop"], "unknown variant 'crop'"),
        (
            ["sweep", "own", "--text", "own.txt", "--over", "training.lr=1e-4,1e-3"],
            "training.lr: study own varies only its points",
        ),
        (["sweep", "tiny", "--over", "training.epoch=1"], "training.epoch: unknown field. Did you mean 'epochs'?"),
        (
            ["export", "embedded:bert-mini", "out", "--static", "--static-dims", "3"],
            "bsl: static_dims: Input should",
        ),
        (
            ["export", "embedded:bert-mini", "out", "--static-dims", "64"],
            "bsl: --static-dims has an effect only with --static. Add",
        ),
        (
            ["export", "embedded:bert-mini", "out", "--onnx", "--text", "a.txt"],
            "bsl: --text has an effect only with --int8 or --dims or --static",
        ),
        (
            ["sweep", "tiny", "--over", "training.lr=1e-3", "--set", "training.lr=1e-4"],
            "training.lr: --over varies the field, but --set or --precision sets it for all points",
        ),
        (["sweep", "tiny", "--over", "training.seed=0,1"], "--seeds sets the number of runs"),
        (["reproduce", "tiny", "--set", "training.seed=7"], "--seeds sets the number of runs"),
        (["reproduce", "tiny", "--margin", "inf"], "--margin inf: expected a number of points above 0"),
        (["run", "tiny", "--dry-run", "--processes", "0"], "bsl: processes (BSL_PROCESSES): Input should be"),
        (
            ["embed", "embedded:bert-mini", "own.txt", "out.csv"],
            "out.csv: expected a name that ends in .parquet, such as vectors.parquet",
        ),
        (["pairs", "embedded:bert-mini", "own.txt", "--above", "90"], "--above 90: expected a cosine"),
        (["pairs", "embedded:bert-mini", "own.txt", "--above", "nan"], "--above nan: expected a cosine"),
        (["adapt", "own.txt", "--lang", "deutsch"], "bsl: lang: expected: ISO 639 code of the text, for example `de`"),
        (
            ["adapt", "own.txt", "--labels", "own.txt", "--set", "training.max_steps=9"],
            "--set training: no effect, because the encoder trains on labels. Set the field of label_training instead",
        ),
        (
            ["adapt", "own.txt", "--set", "label_training.lr=1e-5"],
            "--set label_training: no effect, because the encoder trains on views. Set the field of training instead",
        ),
        (
            ["adapt", "own.txt", "--for", "classify"],
            "--for classify: needs other labels (found no labels, expected texts",
        ),
        (["evaluate", "embedded:bert-mini", "--suite", "nosuch"], "bsl: unknown suite or set 'nosuch'"),
        (["adapt", "own.txt", "--translators", "nosuch"], "bsl: translators: unknown name. Expected embedded, "),
        (["adapt", "own.txt", "--config", "none.json"], "--config none.json: No such file or directory. Name a JSON"),
    ],
)
def test_invalid_arguments_exit_with_code_2_and_message(store, capsys, monkeypatch, call, message):
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")  # never reached: the call is refused first
    assert main(call) == 2
    said = capsys.readouterr().err
    assert message in said
    assert "pydantic" not in said


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (["evaluate", "embedded:bert-mini", "--suite", "stz"], "unknown suite or set 'stz'. Did you mean 'sts'?"),
        (["adapt", "own.txt"], "too little text: sentences of 20 to 1,000 characters: 1, documents: 1; none is left"),
        (
            ["sweep", "own", "--text", "own.txt"],
            "too little text: sentences of 20 to 1,000 characters: 1, documents: 1; none is left",
        ),
        (["adapt", "two.txt"], "too few documents: expected 30 questions about 10 held-out documents"),
        (
            ["adapt", "two.csv", "--labels", "two.csv", "--for", "similarity"],
            "found texts with a class, expected pairs",
        ),
        (["adapt", "blank.csv", "--columns", "text"], "the text columns are empty: 'text' of blank. Name the columns"),
    ],
)
def test_unknown_suite_and_small_text_are_refused_before_a_server_starts(store, capsys, monkeypatch, call, message):
    Path("own.txt").write_text("A cat sleeps on the sofa.\n")
    Path("two.txt").write_text("A cat sleeps on the sofa.\nA dog runs in the park.\n")
    Path("blank.csv").write_text("title,text\nA title,\n")
    Path("two.csv").write_text("text,label\nA cat sleeps.,cat\nA dog runs.,dog\nA cat runs.,cat\nA dog naps.,dog\n")
    monkeypatch.setattr("bsl.flows.cli.terminal.start.reserve_server", lambda: pytest.fail("a server was started"))
    assert main(call) != 0
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("verb", [["run", "tiny", "--json"], ["evaluate", "embedded:bert-mini"]])
def test_unreachable_prefect_server_prints_a_single_error_line(store, capsys, monkeypatch, verb):
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:1/api"}):
        assert main(verb) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("bsl: Prefect server http://127.0.0.1:1/api does not answer (")


def test_folders_that_cannot_be_written_are_refused_at_once(store, capsys, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")  # never reached
    with monkeypatch.context() as patched:
        patched.setattr(Path, "mkdir", lambda *_, **__: (_ for _ in ()).throw(PermissionError(errno.EACCES, "denied")))
        assert main(["run", "tiny"]) == 1
    assert f"bsl: cannot write to {store.url} (--store): writing is not permitted. Choose" in capsys.readouterr().err
    monkeypatch.delenv("PREFECT_API_URL")
    monkeypatch.setenv("PREFECT_HOME", "own.txt/home")
    assert main(["run", "tiny"]) == 1
    assert "cannot write to own.txt/home (PREFECT_HOME): a part of the path is a file" in capsys.readouterr().err


def test_config_file_without_json_object_is_rejected(tmp_path, capsys, monkeypatch):
    (tmp_path / "own.txt").write_text("A cat sleeps.\n")
    (tmp_path / "settings.json").write_text('{"evaluation": null}')
    monkeypatch.chdir(tmp_path)
    own = ["adapt", "own.txt", "--config", "settings.json"]
    assert main([*own, "--suite", "sts"]) == 2
    assert "evaluation is None, expected a JSON object of settings" in capsys.readouterr().err
    (tmp_path / "settings.json").write_text('{"evaluation":')
    assert main(own) == 2
    assert "--config settings.json: expected a JSON object of settings" in capsys.readouterr().err


@pytest.mark.parametrize("order", [1, -1])
def test_set_accepts_objective_and_its_field_in_any_order(order):
    settings = ["training.objective=contrastive", "training.objective.temperature=0.1"]
    objective = configured("tiny", settings[::order]).training.objective
    assert objective == ContrastiveConfig(temperature=0.1)


def test_missing_source_prints_only_an_error_before_the_run(store, capsys, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")  # never reached
    assert main(["run", "tiny", "--set", 'ingest.sources=[{"path": "nowhere.txt"}]']) == 1
    out, err = capsys.readouterr()
    assert (out, err) == ("", "bsl: nowhere.txt: no such file or folder. Correct the path.\n")


@pytest.mark.parametrize(
    ("settings", "code", "told"),
    [
        ({"sets": ["embedded:stsb/dev", "stsb-mt/test"]}, 0, ["ok", "set embedded:stsb/dev", "note", "stsb-mt/test"]),
        ({"sets": ["stsb-mt/test"]}, 1, ["NO", "sets", "none of the sets is available"]),
        ({"sets": ["embedded:stsb/dev"], "dev": "stsb-mt/dev"}, 1, ["NO", "dev set stsb-mt/dev"]),
        ({"sets": ["embedded:stsb/dev", "afs-10-fold"]}, 1, ["NO", "sets", "report/<key> --suite afs-10-fold"]),
    ],
)
def test_doctor_checks_evaluation_sets_like_a_run(store, capsys, settings, code, told):
    changes = [f"--set=evaluation.{field}={json.dumps(value)}" for field, value in settings.items()]
    with patch.dict(os.environ):  # the command changes Prefect's variables of its process
        assert main(["doctor", "tiny", "--device", "cpu", *changes]) == code
    out = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert [part for part in told if part not in out] == []


def test_dry_run_lists_stages_and_publishes_no_artifact(store, capsys):
    with patch.dict(os.environ):
        assert main(["run", "tiny-avg", "--device", "cpu", "--dry-run", "--json"]) == 0
    stages = json.loads(capsys.readouterr().out)
    assert {step["state"] for step in stages} == {"to make"}
    assert [step["stage"] for step in stages][:2] == ["ingest", "embed"]
    assert [*store.refs()] == []


def test_bsl_without_arguments_prints_first_steps(capsys):
    assert main([]) == 0
    assert "bsl run tiny" in capsys.readouterr().out


def test_version_option_prints_the_package_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"bsl-pipeline {version('bsl-pipeline')}\n"


ALL = [verb for group in COMMANDS.values() for verb in group]


@pytest.mark.parametrize("verb", ALL, ids=lambda verb: verb.name)
def test_help_option_prints_usage_of_every_command(verb, capsys):
    assert main([*verb.name.split(), "--help"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"Usage: bsl {verb.name} ")
    assert " ".join(verb.help.split()) in " ".join(printed.split())


def options_of(verb):
    """Return a verb's options: name → help."""
    arguments = app[verb.name.split()[0]]
    for word in verb.name.split()[1:]:
        arguments = arguments[word]
    options = {name: one.parameter.help for one in arguments.assemble_argument_collection() for name in one.names}
    options.pop("*", None)  # a group of options shared by several verbs
    return options


@every([verb for verb in ALL if verb.function])
def test_every_option_has_help_and_choices_without_spaces(verb):
    options = options_of(verb)
    assert "--debug" in options
    assert ("--json" in options) == (verb.name not in {"ui", "completion"})
    assert [name for name, told in options.items() if not told] == []
    trains = {"run", "adapt", "evaluate", "reproduce", "sweep"}
    assert ("--set" in options) == (verb.name in trains | {"doctor", "mirror"})
    assert ("--precision" in options) == (verb.name in trains | {"classify", "embed", "search", "pairs"})
    for one in app.parse_commands(verb.name.split())[1][-1].assemble_argument_collection():
        assert all(" " not in choice for choice in one.get_choices() or ())


@every([verb for verb in ALL if verb.function])
def test_help_is_the_first_line_of_the_docstring(verb):
    module, _, function = verb.function.partition(":")
    described = getattr(importlib.import_module(f"bsl.flows.cli.{module}"), function).__doc__
    assert described.partition("\n")[0] == verb.help


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script_contains_commands_and_options(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert [word for word in ("reproduce", "artifacts", "round-trips", "max-length") if word not in script] == []


def test_recipes_command_prints_a_recipe(capsys):
    assert main(["recipes", "tiny"]) == 0
    assert '"embedded:bert-mini"' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("call", "others"),
    [
        (["--help"], ["pydantic", "polars"]),
        (["run", "--help"], ["polars"]),
        (["run"], ["polars"]),
        (["adapt", "--help"], []),
        (["evaluate", "--help"], []),
    ],
)
def test_help_imports_no_heavy_libraries(call, others):
    """Help is fast; and a verb must set Prefect's settings before Prefect is imported, since it reads them then."""
    libraries = {"prefect", "torch", "transformers", *others}
    code = f"import sys, bsl.flows.cli.main as cli; cli.main({call}); print(sorted({libraries} & sys.modules.keys()))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-1] == "[]"


STARTING = """
import os, sys

def hear(event, arguments):
    if event == "import" and arguments[0] == "prefect":
        print("Prefect is told", os.environ.get("PREFECT_API_URL", "no server")[:17], flush=True)
        os._exit(0)

sys.addaudithook(hear)
from bsl.flows.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    "call",
    [
        ["run", "tiny"],
        ["sweep", "tiny", "--over", "training.lr=1e-4,1e-3"],
        ["sweep", "momentum"],
        ["reproduce", "BSL-BERT"],
        [
            "evaluate",
            "embedded:bert-mini",
            "--suite",
            "stsb-supervised",
            "sts",
            "embedded:stsb/dev",
            "trec",
            "own:own.txt",
        ],
        ["adapt", "own.txt"],
        ["sweep", "own", "--text", "own.txt"],
    ],
)
def test_command_names_its_server_before_importing_prefect(call, tmp_path):
    """If Prefect were imported earlier, it would not know the server, and would start another one."""
    (tmp_path / "own.txt").write_text("".join(f"A dog runs across field {number} of snow.\n" for number in range(600)))
    environment = {name: value for name, value in os.environ.items() if name != "PREFECT_API_URL"}
    command = [sys.executable, "-c", STARTING, *call]
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout.splitlines()[-1:]) == (0, ["Prefect is told http://127.0.0.1:"]), (
        ended.stderr
    )


@pytest.mark.parametrize("call", [["artifacts", "--debug", "gc"], ["artifacts", "gc", "--debug"]])
def test_debug_option_is_accepted_after_command_or_action(store, call):
    with pytest.raises(ValueError, match="expected hours or days"):
        main([*call, "--older-than", "soon"])


def test_ui_refuses_a_port_that_cannot_be_served(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    assert main(["ui", "--port", "99999"]) == 2
    assert capsys.readouterr().err == "bsl: --port 99999: expected a number from 1 to 65535\n"
    with socket.create_server(("127.0.0.1", 0)) as other:
        assert main(["ui", "--port", f"{other.getsockname()[1]}"]) == 2
    assert "Address already in use. Choose another port" in capsys.readouterr().err
