"""The services of docker/compose.yaml run from Debian's and PyPI's packages, with its own settings and commands.

Skipped where PostgreSQL, Redis or prefect-redis are not installed: `apt-get install postgresql redis-server`,
`pip install bsl-pipeline[server]`.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from bsl.flows.recipes import recipe
from bsl.storage.artifacts.store import Store
from tests.flows.conftest import ALONE_SMALL
from tests.postgres import INITDB, Postgres
from tests.servers import PREFECT, ROOT, free_port, wait_until_healthy

COMPOSE = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text())
SECRETS = {
    "POSTGRES_PASSWORD": "database-secret",
    "REDIS_PASSWORD": "redis-secret",
    "PREFECT_AUTH": "admin:server-secret",
    "STORE_USER": "bsl",
    "STORE_PASSWORD": "store-secret",
}
# Three shards per translator.
OVERRIDES = {
    **{name: value for name, value in ALONE_SMALL.items() if name not in {"augment", "pairs"}},
    "ingest": {"corpus": {"limit": 4200}},
    "augment": {"translations": [recipe("tiny").augment.translations[0].model_dump(mode="json")]},
    "pairs": {"pairings": [{"view_1": "original", "view_2": "bt-de"}]},
}

pytestmark = pytest.mark.skipif(
    INITDB is None or not shutil.which("redis-server") or find_spec("prefect_redis") is None,
    reason="PostgreSQL, Redis or prefect-redis is not installed",
)


class Topology:
    """All running services except the workers."""

    def __init__(self, folder, stack):
        self.folder, self._stack = folder, stack
        self.ports = {name: free_port() for name in ("database", "redis", "store", "server")}
        self.client = self._settings("x-client")
        self.pids: dict[str, int] = {}

    def start(self):
        self._database()
        settings = self.folder / "redis.conf"
        settings.write_text(f"requirepass {SECRETS['REDIS_PASSWORD']}\nport {self.ports['redis']}\nbind 127.0.0.1\n")
        self.process("redis", ["redis-server", str(settings)], cwd=self.folder)
        moto = Path(sys.executable).with_name("moto_server")
        self.process("store", [str(moto), "-H", "127.0.0.1", "-p", str(self.ports["store"])])
        server = self._settings("x-server")
        where = ["--host", "127.0.0.1", "--port", str(self.ports["server"])]
        self.process("server", [*self._command("server")[:3], *where, "--no-services"], server)
        wait_until_healthy(self.client["PREFECT_API_URL"])
        self.process("services", self._command("services"), server)
        self.run(shlex.split(COMPOSE["services"]["setup"]["command"]))

    def worker(self, name):
        own = {"PREFECT_WORKER_WEBSERVER_PORT": str(free_port()), "PREFECT_WORKER_QUERY_SECONDS": "2"}
        command = [*self._command("worker-trial"), "--name", name]
        self.process(name, command, {**self.client, **own, "BSL_CACHE": str(self.folder / name)})

    def process(self, name, command, own=None, **how):
        with (self.folder / f"{name}.log").open("ab") as log:
            started = subprocess.Popen(
                command, env=self._environment(own or {}), stdout=log, stderr=log, **{"cwd": ROOT, **how}
            )
        self.pids[name] = started.pid
        self._stack.callback(started.wait, 60)
        self._stack.callback(started.terminate)

    def run(self, command, **own):
        environment = self._environment({**self.client, **own})
        done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=1500)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def log(self, name):
        return (self.folder / f"{name}.log").read_text()

    def _database(self):
        database = Postgres(self.folder, SECRETS["POSTGRES_PASSWORD"], self.ports["database"])
        self._stack.callback(database.stop)

    def _settings(self, name):
        """Return an environment of compose.yaml with this machine's ports."""
        ports = self.ports
        here = {
            "@database/": f"@127.0.0.1:{ports['database']}/",
            "@redis:6379": f"@127.0.0.1:{ports['redis']}",
            "//server:4200": f"//127.0.0.1:{ports['server']}",
            "//store:9000": f"//127.0.0.1:{ports['store']}",
            **{f"${{{secret}:?}}": value for secret, value in SECRETS.items()},
        }
        settings = dict(COMPOSE[name])
        for old, new in here.items():
            settings = {key: str(value).replace(old, new) for key, value in settings.items()}
        settings = {key: re.sub(r"\$\{\w+:-\}", "", value) for key, value in settings.items()}
        assert not any("${" in value for value in settings.values())
        return settings

    def _command(self, service):
        words = COMPOSE["services"][service]["command"].split()
        return [str(PREFECT), *words[1:]]

    def _environment(self, own):
        bins = self.folder / "bin"
        home = {"PREFECT_HOME": str(self.folder / "home"), "PREFECT_SERVER_ANALYTICS_ENABLED": "false", "NO_COLOR": "1"}
        place = {"PWD": str(ROOT), "PYTHONPATH": str(ROOT), "PATH": f"{bins}:{PREFECT.parent}:{os.environ['PATH']}"}
        return {**os.environ, **home, **place, "BSL_CACHE": str(self.folder / "cache"), "BSL_DEVICE": "cpu", **own}


@contextmanager
def running():
    # Not in pytest's folder, which the database's user cannot read.
    with ExitStack() as stack, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "home").mkdir()
        own = folder / "bin" / "bsl"  # the installed one may belong to another work tree
        own.parent.mkdir()
        own.write_text(f'#!/bin/sh\nexec {sys.executable} -m bsl.flows.cli.main "$@"\n')
        own.chmod(0o755)
        made = Topology(folder, stack)
        made.start()
        yield made
        stack.close()


def digests(store):
    return {ref.path: store.check(ref).digest for ref in store.refs()}


@pytest.mark.slow
@pytest.mark.timeout(3600)  # five services, two workers and ten runs start; on a busy machine each takes half a minute
def test_compose_services_with_two_workers_match_a_local_run(monkeypatch):
    with running() as cluster:
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{cluster.client['PREFECT_API_URL']}/admin/version")
        for name in ("one", "other"):
            cluster.worker(name)
        given = ["--param", f"overrides={json.dumps(OVERRIDES)}"]
        for _ in range(2):
            cluster.run([str(PREFECT), "deployment", "run", "bsl-pipeline/tiny", *given, "--watch"])
        logs = {name: cluster.log(name) for name in ("one", "other")}
        assert sum(log.count("published report/") for log in logs.values()) == 1, logs
        for name, value in cluster.client.items():
            monkeypatch.setenv(name, value)
        pooled = Store(cluster.client["BSL_STORE"], cluster.folder / "cache")
        made = digests(pooled)
        sets = [part for name, value in OVERRIDES.items() for part in ("--set", f"{name}={json.dumps(value)}")]
        place = str(cluster.folder / "alone")
        cluster.run(["bsl", "run", "tiny", *sets, "--store", place])
        assert digests(Store(place)) == made
