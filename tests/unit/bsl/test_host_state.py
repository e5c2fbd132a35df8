"""Calls of the Python API leave the state of the caller's process unchanged; each kind runs in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
# Changes by the imported libraries themselves, which this package cannot undo.
_OF_LIBRARIES = {"_RJEM_MALLOC_CONF", "TORCHINDUCTOR_CACHE_DIR", "KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK"}


def changes(call: str, folder: Path) -> dict:
    done = subprocess.run(
        [sys.executable, "-m", "tests.host_state", call, str(folder)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("call", ["import_only", "encode", "evaluate", pytest.param("run", marks=pytest.mark.slow)])
def test_calls_leave_state_of_process_unchanged(call, tmp_path):
    assert changes(call, tmp_path) == {}


def test_first_import_changes_only_what_the_libraries_change(tmp_path):
    found = changes("bare", tmp_path)
    assert set(found) <= {"environment", "warnings", "temporary folder"}
    assert set(found.get("environment", {})) <= _OF_LIBRARIES
    assert found.get("warnings", {}).get("removed", "[]") == "[]"
