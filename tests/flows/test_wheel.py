"""The wheel is one package, and it runs in a project whose own packages have the names of our folders."""

import json
import os
import re
import shlex
import subprocess
import sys
import tarfile
import time
import zipfile
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import pytest
from prefect.settings import get_current_settings

from bsl.storage.artifacts.store import Store
from tests.servers import ROOT

pytestmark = pytest.mark.slow  # an installation, two runs of `tiny` and their workers take two minutes
OWN_PACKAGES = ("bsl_data", "flows", "models", "storage", "tasks")
METADATA = f"bsl_pipeline-{version('bsl-pipeline')}.dist-info"
SECONDS_TO_START = 120.0


def build(target, source, folder):
    """Build the wheel or the sdist of a source tree, and return its file."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(folder)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


def test_wheel_contains_one_package_and_its_metadata(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {"bsl", METADATA}
    sources = [
        path.relative_to(ROOT) for folder in ("flows", "models", "storage", "tasks") for path in files(ROOT / folder)
    ]
    expected = {f"bsl/{path}" for path in [*sources, *(path.name for path in (ROOT / "bsl").glob("*.py"))]}
    assert {name for name in names if name.startswith("bsl/")} == expected
    assert sum(name.endswith((".safetensors", ".parquet")) for name in names) > 1, "the embedded models and texts"


def files(folder):
    return [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]


def test_sdist_builds_an_identical_wheel(wheel, tmp_path):
    sdist = build("sdist", ROOT, tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    again = build("wheel", tmp_path / sdist.name.removesuffix(".tar.gz"), tmp_path / "wheel")
    assert (again.name, again.read_bytes()) == (wheel.name, wheel.read_bytes())


class Installation:
    """A virtual environment with the wheel, and a user's project in which its commands run."""

    def __init__(self, wheel, folder):
        home, self.project = folder / "environment", folder / "project"
        self.bin = home / "bin"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
        pip = [sys.executable, "-m", "pip", "--python", self.bin / "python", "install"]
        subprocess.run([*pip, "--quiet", "--no-deps", "--no-index", wheel], check=True)
        # Python reads no .pth files in folders that a .pth file adds, so the checkout's editable install has no effect.
        dependencies = [path for path in sys.path if Path(path).name == "site-packages"]
        (site,) = home.glob("lib/*/site-packages")
        (site / "dependencies.pth").write_text("\n".join(dependencies))
        for name in OWN_PACKAGES:
            (self.project / name).mkdir(parents=True)
            (self.project / name / "__init__.py").write_text("OWNER = 'user'\n")
        kept = {name: text for name, text in os.environ.items() if not name.startswith(("BSL_", "PREFECT_", "PYTHON"))}
        self.environment = {**kept, "NO_COLOR": "1"}

    def run(self, program, *words, **variables):
        how = {"cwd": self.project, "env": {**self.environment, **variables}}
        done = subprocess.run([self.bin / program, *words], capture_output=True, text=True, timeout=400, **how)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def running(self, log, *words, **variables):
        """Run `python …` in the project until the end of the block."""
        how = {"cwd": self.project, "env": {**self.environment, **variables}}
        with log.open("wb") as output:
            process = subprocess.Popen([self.bin / "python", *words], stdout=output, stderr=output, **how)
        try:
            yield
        finally:
            process.terminate()
            process.wait(60)


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    return Installation(wheel, tmp_path_factory.mktemp("user"))


def test_readme_example_runs_beside_own_packages(installed):
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    own = f"import {', '.join(OWN_PACKAGES)}, sys\nimport bsl.flows as found\nprint(found.__file__, *sys.path)\n"
    own += f"print({', '.join(f'{name}.OWNER' for name in OWN_PACKAGES)})\n"
    (installed.project / "example.py").write_text(own + "\n".join(blocks))
    places, owners, similarity, *scores = installed.run("python", "example.py").splitlines()
    assert Path(places.split()[0]).is_relative_to(installed.bin.parent)
    assert str(ROOT) not in places.split()
    assert owners.split() == ["user"] * len(OWN_PACKAGES)
    assert 0.5 < float(similarity.strip("[]")) < 1
    assert "spearman" in "\n".join(scores)


def test_command_runs_tiny_with_shards_on_a_dask_worker(installed, small, tmp_path):
    scheduler, address = tmp_path / "scheduler.json", ("--scheduler-file", tmp_path / "scheduler.json")
    local = ("--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0")
    worker = ("-m", "distributed.cli.dask_worker", *address, *local, "--nthreads", "1", "--no-nanny")
    with (
        installed.running(
            tmp_path / "scheduler.log", "-m", "distributed.cli.dask_scheduler", *address, *local, "--port", "0"
        ),
        installed.running(tmp_path / "worker.log", *worker),
    ):
        end = time.monotonic() + SECONDS_TO_START
        while not scheduler.exists():
            assert time.monotonic() < end, f"{scheduler} is missing after {SECONDS_TO_START:.0f} s"
            time.sleep(0.1)
        url = json.loads(scheduler.read_text())["address"]
        settings = [word for name, value in small.items() for word in ("--set", f"{name}={json.dumps(value)}")]
        printed = installed.run("bsl", "run", "tiny", *settings, "--cluster", url)
        loaded = "sys.modules['bsl.tasks.translation.translate'].__file__"
        asked = f"print(*Client(sys.argv[1]).run(lambda: {loaded}).values())"
        module = installed.run("python", "-c", f"import sys; from distributed import Client; {asked}", url)
    assert Path(module.strip()).is_relative_to(installed.bin.parent)
    (report,) = Store(str(installed.project / ".bsl" / "store")).refs("report")
    assert f"{report.path}/report.html" in printed


def test_worker_runs_a_deployment_of_the_installed_package(installed, alone, tmp_path):
    prefect = ("-m", "prefect")
    server = {
        "PREFECT_API_URL": str(get_current_settings().api.url),
        "PREFECT_HOME": str(tmp_path / "home"),
        "PREFECT_WORKER_QUERY_SECONDS": "1",
    }
    commands = re.findall(r"^prefect (.*bsl\.flows.*)$", (ROOT / "docs" / "deploy.md").read_text(), re.MULTILINE)
    installed.run("python", *prefect, "work-pool", "create", "gpu", "--type", "process", "--overwrite", **server)
    for command in commands:
        installed.run("python", *prefect, *shlex.split(command), **server)
    store = Store(str(installed.project / "of-the-worker"))
    given = {"recipe_name": "tiny", "overrides": alone, "site": {"store": "of-the-worker"}}
    parameters = [word for name, value in given.items() for word in ("--param", f"{name}={json.dumps(value)}")]
    with installed.running(tmp_path / "worker.log", *prefect, "worker", "start", "--pool", "gpu", **server):
        run = [*prefect, "deployment", "run", "bsl-pipeline/any", *parameters, "--watch"]
        installed.run("python", *run, **server)
    (report,) = store.refs("report")
    assert store.defect(report) is None
