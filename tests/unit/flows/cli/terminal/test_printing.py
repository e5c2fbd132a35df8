"""Programs can read a verb's output: clean JSON, no escape codes, no stray lines."""

import io
import json
import logging
import os
import re
import subprocess
import sys

import pytest
from rich.console import Console

from bsl.flows.cli.main import main
from bsl.flows.cli.terminal import printing
from bsl.flows.cli.terminal.log_lines import line_formatter, spinner, start_lines
from bsl.flows.cli.terminal.printing import browse_line, encoder_lines, print_json, print_line, print_table
from bsl.flows.recipes import RECIPES
from bsl.storage.artifacts.store import Store


def test_json_option_prints_only_json_to_stdout(capsys):
    for words in (["recipes"], ["assets", "ls"], ["pins"]):
        main([*words, "--json"])
        printed = json.loads(capsys.readouterr().out)
        assert printed
        assert words != ["recipes"] or [entry["name"] for entry in printed] == list(RECIPES)


def test_printed_text_contains_no_terminal_escape_codes(capsys, tmp_path):
    folder = tmp_path / "\x1b[2Jred"
    assert main(["search", "embedded:mini-sentence", str(folder), "a query", "--store", str(tmp_path / "store")]) == 1
    print_table("\x1b[31mtitle", [{"sen\x9btence": "a\x1b]0;x\x07 text \u202e"}])
    print_line("\x1b[31mred\u2066")
    logged = logging.LogRecord("x", logging.WARNING, "", 0, "%s is odd", ("\x1b[2Jname",), None)
    printed = capsys.readouterr()
    shown = printed.out + printed.err + line_formatter().format(logged)
    assert "\\x1b[2Jred: no such file" in printed.err
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\u2066]", shown)
    print_json({"text": "\x1b\x9b\x7f\u202e"})
    printed = capsys.readouterr().out
    assert json.loads(printed) == {"text": "\x1b\x9b\x7f\u202e"}
    assert printed.isascii()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_json_is_valid_in_every_encoding_of_the_terminal(monkeypatch, encoding):
    printed = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(printed, encoding=encoding, errors="backslashreplace"))
    print_json({"é": "漢 \ud83d"})
    assert json.loads(printed.getvalue().decode(encoding)) == {"é": "漢 \ud83d"}


def test_json_has_null_for_a_number_that_json_lacks(capsys):
    """Regression: `bsl adapt --json` printed NaN for the intervals of reported sets, which no strict parser reads."""

    def refuse(name):
        raise ValueError(name)

    print_json({"rows": [{"value": 0.5, "ci_low": float("nan")}, ({"loss": float("inf")},)]})
    printed = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert printed == {"rows": [{"value": 0.5, "ci_low": None}, [{"loss": None}]]}


def test_long_cell_of_a_table_is_cut(capsys):
    print_table("title", [{"sentence": "word " * 10_000}])
    printed = capsys.readouterr().out
    assert printed.count("word") == 400
    assert "…" in printed


def test_encoder_is_a_folder_of_a_local_store_and_exported_from_an_object_store(tmp_path):
    folder, lines = encoder_lines(Store(tmp_path), "c" * 64, "adapted")
    assert folder == f"{tmp_path}/checkpoint/{'c' * 64}/encoder"
    assert "(adapted; opens with SentenceTransformer)" in lines
    name, lines = encoder_lines(Store("memory://bsl"), "c" * 64)
    assert name == f"checkpoint/{'c' * 64}"
    assert f"bsl export checkpoint/{'c' * 12} FOLDER" in lines


def test_command_of_the_ui_is_a_target_of_make_only_below_make(monkeypatch):
    monkeypatch.delenv("MAKELEVEL", raising=False)
    assert browse_line() == "browse:  bsl ui"
    monkeypatch.setenv("MAKELEVEL", "1")
    assert browse_line() == "browse:  make ui"


def test_closed_stdout_pipe_exits_without_error_output():
    command = [sys.executable, "-m", "bsl.flows.cli.main", "recipes", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert process.wait() == 141
    assert process.stderr.read() == b""
    process.stderr.close()


def test_character_that_the_terminal_cannot_encode_is_escaped():
    command = [sys.executable, "-m", "bsl.flows.cli.main", "recipes", "--all"]
    locale = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    run = subprocess.run(command, env=locale, capture_output=True, check=False)
    assert (run.returncode, run.stderr) == (0, b"")
    assert run.stdout.isascii()


FAILING = """
import logging
from bsl.flows.cli.terminal.log_lines import be_quiet, start_lines
start_lines()
be_quiet()
import prefect
try:
    raise ValueError("deep inside")
except ValueError:
    logging.getLogger("prefect.task_runs").error("Task run failed", exc_info=True)
from prefect.logging.configuration import setup_logging
setup_logging()
for _ in range(2):
    logging.getLogger("bsl.storage.artifacts.store").warning("a part is %s", "damaged")
logging.getLogger("distributed.nanny").warning("Worker process still alive after 4.0 seconds, killing")
logging.getLogger("prefect._internal.concurrency").error("failed to process item")
"""


def test_be_quiet_suppresses_lines_of_other_packages_but_not_own_warnings():
    """A lost heartbeat printed 900 characters, and the run went on; a failed task printed a traceback."""
    told = subprocess.run([sys.executable, "-c", FAILING], capture_output=True, text=True, check=True).stderr
    assert told.endswith("WARNING a part is damaged\n")
    assert told.count("\n") == 1


NAMED = """
import logging, sys
from bsl.flows.cli.terminal import log_lines
log_lines.start_lines()
getattr(log_lines, sys.argv[1])()
from prefect.logging.configuration import setup_logging
setup_logging()
run = {"task_run_name": "ingest-a1b", "task_name": "ingest"}
logging.getLogger("prefect.task_runs").info("Finished in state Completed()", extra=run)
"""


@pytest.mark.parametrize(("call", "level"), [("leave_to_prefect", {}), ("be_quiet", {"CONSOLE_LEVEL": "INFO"})])
def test_log_of_prefect_names_its_runs_with_debug_or_a_level_of_the_user(call, level):
    command = [sys.executable, "-c", NAMED, call]
    chosen = {f"PREFECT_LOGGING_HANDLERS_{name}": value for name, value in level.items()}
    told = subprocess.run(command, env=os.environ | chosen, capture_output=True, text=True, check=True).stderr
    assert "Task run 'ingest-a1b' - Finished in state Completed()" in told


@pytest.mark.parametrize(("width", "line"), [(60, "47.61"), (120, "47.61 [42.9, 51.7]")])
def test_print_table_never_splits_a_confidence_interval(monkeypatch, width, line):
    out = io.StringIO()
    monkeypatch.setattr(printing, "Console", lambda: Console(file=out, width=width, force_terminal=True))
    rows = [{"figure": "stsb test: spearman, all", **dict.fromkeys(("before all", "after all"), "47.61 [42.9, 51.7]")}]
    print_table("Figures × 100", rows)
    assert [cell.strip() for cell in out.getvalue().splitlines()[4].split("│")[2:4]] == [line] * 2
    assert out.getvalue().count("[42.9, 51.7]") == 2


class Screen(io.StringIO):
    """Terminal that records its output."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def lines():
    """Install the command's own log handler, created before any spinner runs."""
    root = logging.getLogger()
    others, level = root.handlers[:], root.level
    root.handlers[:] = []
    start_lines()
    yield
    root.handlers[:] = others
    root.setLevel(level)


def test_spinner_leaves_warnings_and_stdout_intact(monkeypatch, lines):
    screen, piped = Screen(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(sys, "stdout", piped)
    monkeypatch.setenv("TERM", "xterm")
    with spinner("starting Prefect"):
        logging.getLogger("bsl.storage").warning("a part is damaged")
        sys.stdout.write("result\n")
    (line,) = [line for line in screen.getvalue().splitlines() if "a part is damaged" in line]
    assert "starting Prefect" not in line
    assert piped.getvalue() == "result\n"
