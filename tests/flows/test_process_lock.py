"""Commands lock a folder's Prefect database; the only user marks runs of killed commands as Crashed."""

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime

from prefect import flow
from prefect.client.orchestration import get_client
from prefect.states import Completed, Running, Scheduled

from bsl.flows.prefect_server.crashed_runs import end_crashed_runs
from bsl.flows.prefect_server.server import is_alone, share_lock
from tests.servers import ROOT

PRESENT = "import sys; from pathlib import Path; from bsl.flows.prefect_server.server import share_lock\n"
PRESENT += "print(share_lock(Path(sys.argv[1])), flush=True); sys.stdin.read()"


def test_killed_process_releases_its_shared_lock(tmp_path):
    command = [sys.executable, "-c", PRESENT, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=ROOT, **pipes) as first:
        assert first.stdout.readline() == "True\n"
        with subprocess.Popen(command, cwd=ROOT, **pipes) as second:
            assert second.stdout.readline() == "False\n"
            os.kill(first.pid, signal.SIGKILL)
            first.wait()
            assert not share_lock(tmp_path)  # the second process still has the lock
            second.communicate("")
        assert not share_lock(tmp_path)  # this process has the lock since its first call


def test_is_alone_only_with_the_local_prefect_database(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".bsl" / "prefect").mkdir(parents=True)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "elsewhere"))
    assert not is_alone()
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / ".bsl" / "prefect"))
    assert is_alone()
    monkeypatch.setenv("PREFECT_API_DATABASE_CONNECTION_URL", "postgresql+asyncpg://somewhere/prefect")
    assert not is_alone()


def test_end_crashed_runs_changes_only_earlier_running_runs():
    @flow
    def work() -> None:
        """Never called."""

    first, between, last = (datetime(2001, 1, day, tzinfo=UTC) for day in (1, 2, 3))  # before runs of other tests
    with get_client(sync_client=True) as client:

        def created(state, expected):
            run = client.create_flow_run(work, state=Scheduled(scheduled_time=expected)).id
            client.set_flow_run_state(run, state, force=True)
            return run

        runs = [created(state, first) for state in (Running(), Scheduled(scheduled_time=first), Completed())]
        later = created(Running(), last)  # simulates a command that starts meanwhile
        assert end_crashed_runs(between) == 1
        found = [client.read_flow_run(run).state for run in (*runs, later)]
        assert [state.type.value for state in found] == ["CRASHED", "SCHEDULED", "COMPLETED", "RUNNING"]
        assert "run it again" in found[0].message.lower()
        assert end_crashed_runs(between) == 0
