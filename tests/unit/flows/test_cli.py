"""The command line prints the right output and exit codes."""

import errno
import importlib
import json
import os
import shutil
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
from bsl.storage.artifacts.store import Store
from tests.every import every

ALL = [verb for group in COMMANDS.values() for verb in group]
NOWHERE = "http://127.0.0.1:1/api"


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("BSL_STORE", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.txt").write_text("A cat sleeps.\n")
    return Store(str(tmp_path / "store"))


@pytest.mark.parametrize("verb", [["run", "tiny", "--json"], ["evaluate", "embedded:bert-mini"]])
def test_unreachable_prefect_server_prints_a_single_error_line(store, capsys, monkeypatch, verb):
    monkeypatch.setenv("PREFECT_API_URL", NOWHERE)
    with temporary_settings({PREFECT_API_URL: NOWHERE}):
        assert main(verb) == 1
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert err.startswith(f"bsl: Prefect server {NOWHERE} does not answer (")
        # what the command finds itself, it reports first
        assert main(["run", "tiny", "--set", 'ingest.sources=[{"path": "nowhere.txt"}]']) == 1
        assert capsys.readouterr() == ("", "bsl: nowhere.txt: no such file or folder. Correct the path.\n")


def test_folders_that_cannot_be_written_are_refused_at_once(store, capsys, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", NOWHERE)  # never reached
    with monkeypatch.context() as patched:
        patched.setattr(Path, "mkdir", lambda *_, **__: (_ for _ in ()).throw(PermissionError(errno.EACCES, "denied")))
        assert main(["run", "tiny"]) == 1
    assert f"bsl: cannot write to {store.url} (--store): writing is not permitted. Choose" in capsys.readouterr().err
    monkeypatch.delenv("PREFECT_API_URL")
    monkeypatch.setenv("PREFECT_HOME", "own.txt/home")
    assert main(["run", "tiny"]) == 1
    assert "cannot write to own.txt/home (PREFECT_HOME): a part of the path is a file" in capsys.readouterr().err


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


def test_first_steps_version_and_a_recipe_are_printed(capsys):
    for words, printed in (
        ([], "bsl run tiny"),
        (["--version"], f"bsl-pipeline {version('bsl-pipeline')}\n"),
        (["recipes", "tiny"], '"embedded:bert-mini"'),
    ):
        assert main(words) == 0
        assert printed in capsys.readouterr().out


@pytest.mark.parametrize("verb", ALL, ids=lambda verb: verb.name)
def test_help_option_prints_usage_of_every_command(verb, capsys):
    assert main([*verb.name.split(), "--help"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"Usage: bsl {verb.name} ")
    assert " ".join(verb.help.split()) in " ".join(printed.split())


@every([verb for verb in ALL if verb.function])
def test_every_option_has_help_and_choices_without_spaces(verb):
    arguments = app.parse_commands(verb.name.split())[1][-1].assemble_argument_collection()
    options = {name: one.parameter.help for one in arguments for name in one.names if name != "*"}
    assert "--debug" in options
    assert ("--json" in options) == (verb.name not in {"ui", "completion"})
    assert [name for name, told in options.items() if not told] == []
    trains = {"run", "adapt", "evaluate", "reproduce", "sweep"}
    assert ("--set" in options) == (verb.name in trains | {"doctor", "mirror"})
    assert ("--precision" in options) == (verb.name in trains | {"classify", "embed", "search", "pairs"})
    assert all(" " not in choice for one in arguments for choice in one.get_choices() or ())
    module, _, function = verb.function.partition(":")
    described = getattr(importlib.import_module(f"bsl.flows.cli.{module}"), function).__doc__
    assert described.partition("\n")[0] == verb.help


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script_contains_commands_and_options(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert [word for word in ("reproduce", "artifacts", "round-trips", "max-length") if word not in script] == []


@pytest.mark.parametrize(
    ("shell", "registered"),
    [("bash", "complete -o default -F _bsl bsl"), ("zsh", "_bsl_or_files")],  # file names where nothing else fits
)
def test_completion_script_evaluated_as_documented_also_completes_files(shell, registered):
    """Regression: `bsl adapt rev<TAB>` completed nothing; in zsh, `eval` registered nothing at all."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    show = {"bash": "complete -p bsl", "zsh": "print $_comps[bsl]"}[shell]
    start = {"bash": "true", "zsh": "autoload -Uz compinit; compinit -u -D"}[shell]
    called = f'{start}; eval "$({sys.executable} -m bsl.flows.cli.main completion {shell})"; {show}'
    done = subprocess.run([shell, "-c", called], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == (registered, "")


HELPS = """
import contextlib, io, json, sys
from bsl.flows.cli.commands import COMMANDS
from bsl.flows.cli.main import main
calls = [["--help"], ["run"], *([*command.name.split(), "--help"] for group in COMMANDS.values() for command in group)]
heavy = {"prefect", "torch", "transformers", "polars", "pyarrow", "numpy", "fsspec", "huggingface_hub"}
for call in calls:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        main(call)
    found = heavy & sys.modules.keys()
    assert not found, (call, found)
    assert call != ["--help"] or "pydantic" not in sys.modules
import bsl.tasks.views.augment, bsl.tasks.views.pairs  # planning a run imports them
assert not {"torch", "transformers"} & sys.modules.keys()
"""


def test_help_of_every_command_imports_no_heavy_libraries_and_stages_of_views_no_torch():
    """Help is fast; and a command must set Prefect's settings before Prefect is imported, which reads them then."""
    ended = subprocess.run([sys.executable, "-c", HELPS], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


CALLS = """
run tiny --set training.lr=1e-4
sweep tiny --over training.lr=1e-4,1e-3 --set training.epochs=1
sweep momentum
reproduce BSL-BERT --seeds 2
evaluate embedded:bert-mini --suite stsb-supervised sts embedded:stsb/dev trec own:own.txt
adapt own.txt --suite stsb/test --set training.lr=1e-4
sweep own --text own.txt --over variant=crops --set training.max_steps=2
"""
STARTING = """
import os, sys

def hear(event, arguments):
    if event == "import" and arguments[0] == "prefect":
        print("Prefect is told", os.environ.get("PREFECT_API_URL", "no server")[:17], flush=True)
        os._exit(0)

sys.addaudithook(hear)
import polars, pydantic  # slow to import, once for all calls
from bsl.flows.cli.main import main
for call in sys.argv[1].strip().splitlines():
    if not (child := os.fork()):
        os._exit(main(call.split()))
    if os.waitpid(child, 0)[1]:
        sys.exit(call)
"""


def test_command_names_its_server_before_importing_prefect(tmp_path):
    """If Prefect were imported earlier, it would not know the server, and would start another one."""
    (tmp_path / "own.txt").write_text("".join(f"A dog runs across field {number} of snow.\n" for number in range(600)))
    environment = {name: value for name, value in os.environ.items() if name != "PREFECT_API_URL"}
    command = [sys.executable, "-c", STARTING, CALLS]
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    told = [line for line in ended.stdout.splitlines() if line.startswith("Prefect is told")]
    assert told == ["Prefect is told http://127.0.0.1:"] * len(CALLS.split("\n")[1:-1])


@pytest.mark.parametrize("call", ["--debug artifacts gc", "artifacts --debug gc", "artifacts gc --debug"])
def test_debug_option_is_accepted_anywhere(store, call):
    with pytest.raises(ValueError, match="expected a time up to 36500d"):
        main([*call.split(), "--older-than", "36501d"])


def test_ui_refuses_a_port_that_cannot_be_served(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    for port in ("0", "99999"):
        assert main(["ui", "--port", port]) == 2
        assert f'bsl: Invalid value "{port}" for --port. Must be ' in capsys.readouterr().err
    with socket.create_server(("127.0.0.1", 0)) as other:
        assert main(["ui", "--port", f"{other.getsockname()[1]}"]) == 2
    assert "Address already in use. Choose another port" in capsys.readouterr().err
    monkeypatch.setenv("PREFECT_API_URL", NOWHERE)
    assert main(["ui"]) == 0
    assert capsys.readouterr().out == f"Prefect server {NOWHERE} has its own UI: {NOWHERE.removesuffix('/api')}\n"
