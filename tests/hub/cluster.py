"""Start a process worker; the environment of processes that use the stand-in Hub."""

import subprocess
from contextlib import contextmanager
from pathlib import Path

from tests.hub.server import StandInHub
from tests.servers import PREFECT, ROOT


def of_the_hub(hub: StandInHub, home: Path) -> dict[str, str]:
    """Return the environment of a process that uses the stand-in Hub; the Hub's client reads it on import."""
    return {
        "HF_ENDPOINT": hub.url,
        "HF_HOME": str(home),
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "OMP_NUM_THREADS": "1",
    }


@contextmanager
def worker(folder):
    """Run a worker of this process's server, with its log in `folder`."""
    prefect("work-pool", "create", "gpu", "--type", "process", "--overwrite")
    with (folder / "worker.log").open("wb") as log:
        process = subprocess.Popen([PREFECT, "worker", "start", "--pool", "gpu"], cwd=ROOT, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


def prefect(*command):
    """Run a command of Prefect's and return its output."""
    done = subprocess.run([PREFECT, *command], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"prefect {' '.join(command[:3])} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout
