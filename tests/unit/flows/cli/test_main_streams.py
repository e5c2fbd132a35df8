"""A command whose standard streams are closed, as some schedulers start it, gives their numbers to no other file."""

import subprocess
import sys

import pytest

CODE = """
import sys
from pathlib import Path
from bsl.flows.cli.main import main
from bsl.flows.prefect_server.server import listen
code = main(["--version"])
with listen(0) as socket:
    found = [code, socket.fileno() > 2, *(stream is not None for stream in (sys.stdin, sys.stdout, sys.stderr))]
Path("found").write_text(repr(found))
"""


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&- 2>&-"])
def test_closed_streams_are_opened_before_other_files(tmp_path, closed):
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-c", CODE]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert (tmp_path / "found").read_text() == repr([0, *4 * [True]])
