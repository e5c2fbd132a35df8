"""A command whose server cannot write its database says why, and which variable names the folder."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from bsl.flows.prefect_server.server import check_database_folder
from bsl.flows.prefect_server.server_process import LoopbackOnly
from bsl.storage.errors import StoreWriteError
from tests.confined import SUPPORTED, confined
from tests.hostile import as_nobody

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

COMMAND = ["evaluate", "embedded:mini-sentence", "--suite", "embedded:stsb/test"]


def test_database_folder_that_cannot_be_written_is_an_error_with_its_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    check_database_folder()
    assert not list(tmp_path.iterdir())
    tmp_path.chmod(0o555)
    with as_nobody(), pytest.raises(StoreWriteError, match=r"\(PREFECT_HOME\): writing is not permitted\. Choose"):
        check_database_folder()


def test_size_limit_below_that_of_a_database_is_an_error_with_its_cause(tmp_path: Path) -> None:
    check = "from bsl.flows.prefect_server.server import check_database_folder; check_database_folder()"
    limited = ["sh", "-c", 'ulimit -f 64; exec "$@"', "sh", sys.executable, "-c", check]
    environment = {**os.environ, "PREFECT_HOME": str(tmp_path)}
    done = subprocess.run(limited, env=environment, capture_output=True, text=True, check=False)
    assert "(PREFECT_HOME): a file would exceed `ulimit -f`" in done.stderr


@pytest.mark.skipif(not SUPPORTED, reason="needs user namespaces")
def test_command_whose_database_is_on_a_full_disk_names_disk_and_variable(tmp_path: Path) -> None:
    command = confined([sys.executable, "-m", "bsl.flows.cli.main", *COMMAND], full=tmp_path)
    environment = {**os.environ, "PREFECT_HOME": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"bsl: cannot write to {tmp_path} (PREFECT_HOME): the disk is full. Free space or choose another folder.\n"
    )


def test_start_that_fails_is_printed_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    trace = "Traceback (most recent call last):\n  x\nsqlite3.OperationalError: disk I/O error\n[SQL: …]\n"
    sent = []

    async def app(_: object, __: object, send: Callable[[Mapping[str, str]], Awaitable[None]]) -> None:
        await send({"type": "lifespan.startup.failed", "message": trace})

    async def tell(message: Mapping[str, str] | None = None) -> None:
        sent.append(message)

    asyncio.run(LoopbackOnly(app)({"type": "lifespan"}, tell, tell))
    assert len(sent) == 1
    assert capsys.readouterr().err == "Prefect server: sqlite3.OperationalError: disk I/O error\n"
