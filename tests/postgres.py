"""A PostgreSQL of a test's own, from Debian's packages, that can be killed and started again."""

import os
import shutil
import subprocess
import time
from pathlib import Path

from tests.servers import children, free_port, is_alive

INITDB = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))), None)


class Postgres:
    """A cluster in a folder whose parents its user may enter; it runs as that user where we are root.

    Attributes:
        url: as a Prefect server's settings name its database `prefect`.
        process: that serves it.
    """

    def __init__(self, folder: Path, password: str, port: int | None = None) -> None:
        assert INITDB is not None
        self._folder, self._password, self._port = folder, password, port or free_port()
        self.url = f"postgresql+asyncpg://prefect:{password}@127.0.0.1:{self._port}/prefect"
        self._how: dict[str, object] = {"cwd": folder}
        (folder / "database").mkdir()
        if os.getuid() == 0:  # as whom it refuses to run
            self._how |= {"user": "postgres", "group": "postgres", "extra_groups": []}
            shutil.chown(folder / "database", "postgres", "postgres")
        secret = folder / "password"
        secret.write_text(password)
        made = ["-D", str(folder / "database"), "-U", "prefect", f"--pwfile={secret}", "-A", "scram-sha-256"]
        subprocess.run([INITDB, *made], check=True, capture_output=True, **self._how)
        self.start()
        self._when_it_answers("createdb", "prefect")

    def start(self) -> None:
        """Serve, or serve again after a kill."""
        where = ["-D", str(self._folder / "database"), "-p", str(self._port), "-h", "127.0.0.1", "-k", ""]
        with (self._folder / "database.log").open("ab") as log:
            self.process = subprocess.Popen([INITDB.with_name("postgres"), *where], stdout=log, stderr=log, **self._how)

    def kill(self) -> None:
        """As signal 9 does: its own processes see it and end; nothing is written down first."""
        own = children(self.process.pid)
        self.process.kill()
        self.process.wait()
        while any(map(is_alive, own)):  # as long as one is there, no other takes its memory over
            time.sleep(0.1)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)

    def rows(self, query: str) -> list[str]:
        """What a query gives, a line each."""
        return self._when_it_answers("psql", "-d", "prefect", "-Atc", query).splitlines()

    def _when_it_answers(self, program: str, *words: str) -> str:
        command = [str(INITDB.with_name(program)), "-h", "127.0.0.1", "-p", str(self._port), "-U", "prefect", *words]
        known = {**os.environ, "PGPASSWORD": self._password}
        end = time.monotonic() + 60
        while (done := subprocess.run(command, env=known, capture_output=True, text=True)).returncode:
            assert time.monotonic() < end, done.stderr + (self._folder / "database.log").read_text()
            time.sleep(0.5)
        return done.stdout
