"""Calls of the Python API leave the state of the caller's process unchanged."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
# Changes by the imported libraries themselves, which this package cannot undo.
_OF_LIBRARIES = {"_RJEM_MALLOC_CONF", "TORCHINDUCTOR_CACHE_DIR", "KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK"}


def changes(folder: Path, *calls: str) -> dict[str, dict]:
    """Return what each of the calls changed in a process that makes them one after the other."""
    command = [sys.executable, "-m", "tests.host_state", str(folder), *calls]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    "calls", [["import_only", "encode", "evaluate"], pytest.param(["run"], marks=pytest.mark.slow)]
)
def test_calls_leave_state_of_process_unchanged_and_a_careless_call_does_not(calls, tmp_path):
    found = changes(tmp_path, *calls, "careless")
    names = {f"torch {part}" for part in ("threads", "precision", "attention", "random")}
    names |= {"gc", "csv", "environment", "logging", "log records", "nltk", "signals", "numpy random", "random"}
    assert names | {"transformers", "hub", "datasets", "warnings"} <= set(found.pop("careless"))
    assert found == {call: {} for call in calls}


def test_first_import_changes_only_what_the_libraries_change(tmp_path):
    found = changes(tmp_path, "bare")["bare"]
    assert set(found) <= {"environment", "warnings", "temporary folder"}
    assert set(found.get("environment", {})) <= _OF_LIBRARIES
    assert found.get("warnings", {}).get("removed", "[]") == "[]"


LOGGING = """
import logging, sys
logging.basicConfig(filename=sys.argv[1], filemode="w", format="%(message)s")
own = logging.getLogger("host")
own.addHandler(logging.FileHandler(sys.argv[2], "x"))
own.warning("before")
from bsl.imports import importing
with importing():
    from prefect.logging.configuration import setup_logging
    setup_logging(incremental=False)
own.warning("after")
"""


def test_log_files_of_the_caller_get_lines_after_the_first_import_too(tmp_path):
    files = [tmp_path / "root.log", tmp_path / "host.log"]
    subprocess.run([sys.executable, "-c", LOGGING, *files], cwd=ROOT, check=True)
    assert [file.read_text() for file in files] == ["before\nafter\n"] * 2
