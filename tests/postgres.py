"""A PostgreSQL server for one test, from Debian's packages, that can be killed and restarted."""

import os
import shutil
import subprocess
import time
from pathlib import Path

from tests.servers import children, free_port, is_alive

INITDB = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))), None)


class Postgres:
    """A cluster in a folder whose parents its user may enter; it runs as the user postgres if we are root."""

    def __init__(self, folder, password, port=None):
        assert INITDB is not None
        self._folder, self._password, self._port = folder, password, port or free_port()
        self.url = f"postgresql+asyncpg://prefect:{password}@127.0.0.1:{self._port}/prefect"
        self._how: dict[str, object] = {"cwd": folder}
        (folder / "database").mkdir()
        if os.getuid() == 0:  # PostgreSQL refuses to run as root
            self._how |= {"user": "postgres", "group": "postgres", "extra_groups": []}
            shutil.chown(folder / "database", "postgres", "postgres")
        secret = folder / "password"
        secret.write_text(password)
        made = ["-D", str(folder / "database"), "-U", "prefect", f"--pwfile={secret}", "-A", "scram-sha-256"]
        subprocess.run([INITDB, *made], check=True, capture_output=True, **self._how)
        self.start()
        self._when_it_answers("createdb", "prefect")

    def start(self):
        where = ["-D", str(self._folder / "database"), "-p", str(self._port), "-h", "127.0.0.1", "-k", ""]
        with (self._folder / "database.log").open("ab") as log:
            self.process = subprocess.Popen([INITDB.with_name("postgres"), *where], stdout=log, stderr=log, **self._how)

    def kill(self):
        """Kill the server with signal 9: its child processes notice and end, without a checkpoint."""
        own = children(self.process.pid)
        self.process.kill()
        self.process.wait()
        while any(map(is_alive, own)):  # a new server cannot take over the shared memory while one of them lives
            time.sleep(0.1)

    def stop(self):
        self.process.terminate()
        self.process.wait(60)

    def rows(self, query):
        return self._when_it_answers("psql", "-d", "prefect", "-Atc", query).splitlines()

    def _when_it_answers(self, program, *words):
        command = [str(INITDB.with_name(program)), "-h", "127.0.0.1", "-p", str(self._port), "-U", "prefect", *words]
        known = {**os.environ, "PGPASSWORD": self._password}
        end = time.monotonic() + 60
        while (done := subprocess.run(command, env=known, capture_output=True, text=True)).returncode:
            assert time.monotonic() < end, done.stderr + (self._folder / "database.log").read_text()
            time.sleep(0.5)
        return done.stdout
