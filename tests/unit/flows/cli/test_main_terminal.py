"""Commands in a terminal: typing errors and failures are one line, tables fit a narrow window."""

import io
import logging
import subprocess
import sys

import pytest
from rich.console import Console

from bsl.flows.cli.main import main
from bsl.flows.cli.terminal import printing
from bsl.flows.cli.terminal.log_lines import spinner, start_lines

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
logging.getLogger("bsl.storage.artifacts.store").warning("a part is damaged")
"""


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (["runn"], "bsl: unknown command 'runn'. Did you mean 'run'? `bsl --help` lists all commands\n"),
        (["xyzzy"], "bsl: unknown command 'xyzzy'. `bsl --help` lists all commands\n"),
        (
            ["--debug", "run", "tiny"],
            "bsl: options follow the command: bsl run … --debug. `bsl run --help` lists them\n",
        ),
        (["--json"], "bsl: options follow the command: bsl COMMAND … --json. `bsl --help` lists them\n"),
        (
            ["run", "tiny", "--sett", "x"],
            "bsl: run: unknown option '--sett'. Did you mean '--set'? `bsl run --help` lists its options\n",
        ),
        (["run", "tiny", "nli"], "bsl: run: unexpected argument 'nli'. `bsl run --help` lists its arguments\n"),
    ],
)
def test_typing_error_prints_a_single_line_with_suggestion(capsys, call, told):
    assert main(call) == 2
    assert capsys.readouterr() == ("", told)


def test_main_raises_gc_threshold_and_freezes_objects_at_exit():
    # Registered before the command, so that it runs after the command's own.
    code = """
import atexit, gc
atexit.register(lambda: print(gc.get_freeze_count() > 10_000))
from bsl.flows.cli.main import main
main([])
print(gc.get_threshold()[0])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-2:] == ["10000", "True"]


def test_be_quiet_suppresses_prefect_tracebacks_but_not_own_warnings():
    """The verb prints one line instead; this package's own warnings stay."""
    told = subprocess.run([sys.executable, "-c", FAILING], capture_output=True, text=True, check=True).stderr
    assert "deep inside" not in told
    assert told.endswith("WARNING a part is damaged\n")


@pytest.mark.parametrize("verb", [["adapt"], ["sweep", "own", "--text"]])
@pytest.mark.parametrize("path", ["nowhere.txt", "letters/nowhere.csv", "nowhere"])
def test_missing_text_file_error_names_the_path(tmp_path, capsys, monkeypatch, verb, path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")  # never reached
    assert main([*verb, path]) == 1
    assert capsys.readouterr() == ("", f"bsl: {path}: no such file, folder or dataset. Correct the name.\n")


@pytest.mark.parametrize(("width", "line"), [(60, "47.61"), (120, "47.61 [42.9, 51.7]")])
def test_print_table_never_splits_a_confidence_interval(monkeypatch, width, line):
    out = io.StringIO()
    monkeypatch.setattr(printing, "Console", lambda: Console(file=out, width=width, force_terminal=True))
    rows = [{"figure": "stsb test: spearman, all", **dict.fromkeys(("before all", "after all"), "47.61 [42.9, 51.7]")}]
    printing.print_table("Figures × 100", rows)
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
