"""Wrong names in a call are refused with the nearest name, before heavy imports."""

import json
import subprocess
import sys

import pytest

from bsl.flows.cli.main import main

CODE = """
import contextlib, io, json, sys
from bsl.flows.cli.main import main
ended = []
for call in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = main(call)
    heavy = [name for name in ("prefect", "torch", "transformers", "sklearn") if name in sys.modules]
    ended.append([code, out.getvalue(), err.getvalue(), heavy])
print(json.dumps(ended))
"""
BEFORE_THE_SERVER = """
import json, sys
from bsl.flows.cli.main import main
from bsl.flows.cli.terminal import start

def end():
    raise SystemExit(13 if "prefect" in sys.modules else 7)

start.use_server = end
print(json.dumps([main(call) for call in json.loads(sys.argv[1])]))
"""
FLOWS = [
    ["adapt", "long.txt", "--suite", "stsb/test", "--set", "training.lr=1e-4"],
    ["evaluate", "embedded:bert-mini", "--suite", "labels:own.txt", "--set", "bootstrap.seed=1"],
    ["sweep", "own", "--text", "long.txt", "--over", "variant=crops", "--set", "training.max_steps=2"],
    ["reproduce", "tiny", "--seeds", "2"],
    ["run", "tiny", "--set", "training.lr=1e-4"],
    ["sweep", "tiny", "--over", "training.lr=1e-4,1e-3", "--set", "training.epochs=1"],
]
WRONG = [
    (["adapt", "won.txt"], "no such file, folder or dataset (did you mean 'own.txt'?)"),
    (["adapt", "~nobody-here/own.txt"], "~nobody-here/own.txt: no such file, folder or dataset"),
    (["adapt", "zip://own.txt::none.zip"], "zip://own.txt::none.zip: cannot be read"),
    (["evaluate", "~nobody-here/encoder"], "~nobody-here/encoder: no such folder"),
    (["adapt", "stsb/tets"], "(did you mean 'stsb/test'?), expected one of train, dev, test"),
    (["adapt", "stsbb"], "(did you mean 'stsb'?)"),
    (["adapt", "embedded:nli-sampel"], "Did you mean 'embedded:nli-sample'?"),
    (["adapt", "own.txt", "--encoder", "embedded:mini-sentnce"], "Did you mean 'embedded:mini-sentence'?"),
    (["adapt", "own.txt", "--labels", "onw.txt"], "(did you mean 'own.txt'?)"),
    (["sweep", "own", "--text", "onw.txt"], "(did you mean 'own.txt'?)"),
    (["sweep", "own", "--text", "own.txt", "--encoder", "checkpoint/0000"], "'checkpoint/0000' matches nothing"),
    (["evaluate", "embedded:bert-mni"], "Did you mean 'embedded:bert-mini'?"),
    (["evaluate", "./glove.300d.txt"], "no such file, expected word vectors"),
    (["evaluate", "embedded:bert-mini", "--suite", "own:onw.txt"], "(did you mean 'own.txt'?)"),
    (["evaluate", "embedded:bert-mini", "--suite", "labels:onw.txt"], "(did you mean 'own.txt'?)"),
    (["adapt", "own.txt", "--suite", "labels:onw.txt"], "(did you mean 'own.txt'?)"),
    (["adapt", "own.txt", "--suite", "stsb/tst"], "(did you mean 'stsb/test'?)"),
    (["evaluate", "embedded:bert-mini", "--suite", "embedded:stsb/foo"], "no split 'foo', expected one of"),
    (["sweep", "tiny", "--over", "training.lr=1e-4,1e-3", "--set", 'evaluation.sets=["stsb/foo"]'], "no split 'foo'"),
    (["search", "embedded:mini-sentence", "onw.txt", "a query"], "(did you mean 'own.txt'?)"),
    (["embed", "embedded:mini-sentnce", "own.txt", "out.parquet"], "Did you mean 'embedded:mini-sentence'?"),
    (
        ["embed", "embedded:bert-mini", "table.xlsx", "out.parquet"],
        "Save the file in one of these formats, such as .csv",
    ),
    (
        ["search", "embedded:bert-mini", "table.xlsx", "a query"],
        "table.xlsx: unknown file suffix, expected one of .txt",
    ),
    (["embed", "embedded:bert-mini", "own.txt", "own.parquet"], "own.parquet: already exists. Name a new file"),
    (["adapt", ""], "'' is an empty path"),
    (["adapt", "own.txt", "--suite", "own:onw.txt"], "(did you mean 'own.txt'?)"),
    (["search", "embedded:mini-sentence", "", "a query"], "'' is an empty path"),
    (["evaluate", "embedded:bert-mini", "--suite", "own:"], "'' is an empty path"),
    (["evaluate", "embedded:stsb"], "embedded:stsb is not a model: it contains "),
    (["evaluate", "models"], "models is not a model: it contains nothing, expected config.json or modules.json"),
    (["pairs", "./modls", "own.txt"], "(did you mean 'models'?)"),
    (["export", "embedded:bert-mni", "out"], "Did you mean 'embedded:bert-mini'?"),
    (["export", "embedded:bert-mini", "out", "--static", "--text", "onw.txt"], "(did you mean 'own.txt'?)"),
    (["export", "embedded:bert-mini", "out", "--int8", "--text", "onw.txt"], "(did you mean 'own.txt'?)"),
    (["export", "embedded:bert-mini", "models"], "models: already exists. Name a new folder"),
    (["artifacts", "ls", "--store", "own.txt"], "own.txt is a file, expected a folder. Choose another folder"),
    (["artifacts", "gc", "--store", "own.txt/store"], "own.txt is a file, expected a folder. Choose another folder"),
    (["export", "embedded:bert-mini", "own.txt/out"], "own.txt/out: a part of the path is a file"),
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "own.txt").write_text("A dog runs across a field of snow.\n")
    (tmp_path / "long.txt").write_text("".join(f"A dog runs across field {number} of snow.\n" for number in range(600)))
    (tmp_path / "table.xlsx").touch()
    (tmp_path / "own.parquet").touch()
    (tmp_path / "models").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BSL_STORE", str(tmp_path / "store"))
    return tmp_path


def test_wrong_name_error_suggests_the_nearest_before_heavy_imports(folder):
    """One process makes all calls: a heavy import of any of them would be seen after it."""
    calls = [call for call, _ in WRONG]
    ended = subprocess.run([sys.executable, "-c", CODE, json.dumps(calls)], capture_output=True, text=True, check=True)
    assert ended.stderr == ""
    for (call, message), (code, out, err, heavy) in zip(WRONG, json.loads(ended.stdout), strict=True):
        assert (code, out, heavy) == (1, "", []), call
        assert message in err, call
        assert err.count("\n") == 1, call


@pytest.mark.usefixtures("folder")
def test_prefect_is_imported_after_its_server_is_named():
    """Prefect reads its settings on import; a command that imports it earlier starts Prefect's temporary server."""
    command = [sys.executable, "-c", BEFORE_THE_SERVER, json.dumps(FLOWS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (f"{[7] * len(FLOWS)}\n", "")


def test_run_rejects_a_misspelt_encoder_before_it_starts(folder, capsys, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")  # never reached
    assert main(["run", "tiny", "--set", "encoder.model=embedded:bert-mni"]) == 1
    assert "Did you mean 'embedded:bert-mini'?" in capsys.readouterr().err


def test_missing_column_error_names_the_option_to_correct(folder, capsys, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")  # never reached
    (folder / "own.csv").write_text("id,body\n1,A dog runs across a field of snow.\n")
    for option, name in (("--columns", "boddy"), ("--title", "subject"), ("--document", "thread")):
        assert main(["adapt", "own.csv", option, name]) == 1
        said = capsys.readouterr().err
        assert f"column {name!r} is missing" in said
        assert said.endswith(f"Name the right columns with `{option}`.\n")


def test_non_utf8_file_error_suggests_an_iconv_command(folder, capsys, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")  # never reached
    (folder / "latin.txt").write_bytes("Schönes Wetter in Köln.\n".encode("latin-1") * 9)
    assert main(["adapt", "latin.txt"]) == 1
    said = capsys.readouterr().err
    assert "latin.txt, line 1: not UTF-8" in said
    assert "iconv -f " in said
    assert " latin.txt" in said
    assert "run again" not in said


def test_compare_on_an_empty_store_reports_no_report(folder, capsys):
    assert main(["compare", "sweep/latest", "report/latest"]) == 2
    assert "sweep/latest: expected report/<key>" in capsys.readouterr().err
    assert main(["compare", "report/latest"]) == 1  # the store is empty
    assert "contains no report" in capsys.readouterr().err
