"""A run continues unharmed when its PostgreSQL is killed with signal 9 and started again.

Skipped where PostgreSQL or asyncpg are not installed: `apt-get install postgresql`, `pip install bsl-pipeline[server]`.
"""

import os
import subprocess
import tempfile
import time
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.operation.killing import BSL, Household, own_settings, settings
from tests.postgres import INITDB, Postgres
from tests.servers import PREFECT, free_port, wait_until_healthy

pytestmark = pytest.mark.skipif(
    INITDB is None or find_spec("asyncpg") is None, reason="PostgreSQL or asyncpg is not installed"
)


class Served:
    """A Prefect server on PostgreSQL, and runs that use it."""

    def __init__(self, folder, stack):
        self.folder = folder
        self.house = Household(folder, settings(folder))
        self.database = Postgres(folder, "secret")
        stack.callback(self.database.stop)
        own = {"PREFECT_HOME": str(folder / "home"), "PREFECT_SERVER_ANALYTICS_ENABLED": "false"}
        self._known = {**os.environ, **own_settings(folder), **own}
        port = free_port()
        server = [PREFECT, "server", "start", "--host", "127.0.0.1", "--port", f"{port}"]
        self._start("server", server, stack, PREFECT_SERVER_DATABASE_CONNECTION_URL=self.database.url)
        self._known["PREFECT_API_URL"] = f"http://127.0.0.1:{port}/api"
        wait_until_healthy(self._known["PREFECT_API_URL"])
        self._stack = stack

    def run(self, name):
        (self.folder / "tmp").mkdir(exist_ok=True)  # each life deletes it
        return self._start(name, [*BSL, "run", "tiny", *self.house.words], self._stack)

    def killed(self, name):
        """Start a run and kill its database when the first stage has published."""
        going = self.run(name)
        while not self.made():
            assert going.poll() is None, self.log(name)
            time.sleep(0.1)
        self.database.kill()
        return going

    def states(self):
        return self.database.rows("SELECT state_type FROM flow_run ORDER BY created")

    def made(self):
        return {str(path.parent): path.stat().st_mtime_ns for path in self.house.store.rglob("manifest.json")}

    def log(self, name):
        return (self.folder / f"{name}.log").read_text()

    def _start(self, name, command, stack, **own):
        with (self.folder / f"{name}.log").open("ab") as log:
            started = subprocess.Popen(
                list(map(str, command)), env={**self._known, **own}, cwd=self.folder, stdout=log, stderr=log
            )
        stack.callback(started.wait, 60)
        stack.callback(started.terminate)
        return started


@pytest.fixture
def served():
    # Not in pytest's folder, which the database's user cannot read.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name, ExitStack() as stack:
        Path(name).chmod(0o755)
        yield Served(Path(name), stack)


@pytest.mark.slow
@pytest.mark.timeout(1800)  # a server and two runs start; on a busy machine each takes half a minute
def test_run_completes_after_its_database_is_killed_and_restarted(served):
    undisturbed = served.run("undisturbed")
    assert undisturbed.wait() == 0, served.log("undisturbed")
    expected = served.house.digests()
    served.house.forget()
    going = served.killed("going")
    served.database.start()  # as a supervisor of services does
    assert going.wait() == 0, served.log("going")
    assert served.house.digests() == expected
    assert served.states() == ["COMPLETED", "COMPLETED"]
