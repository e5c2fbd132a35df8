"""Fine-tuning stages that are killed or asked to stop make the same bytes when run again as undisturbed ones."""

import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.tiny_finetuning import prepare, run

ROOT = Path(__file__).parents[5]
PATIENCE_S = 300


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return prepare(tmp_path_factory.mktemp("finetuning"))


def end(folder, kind, number, after):
    """Start the stage in its own process, send the signal some steps after `after`, and return the exit status."""
    command = [sys.executable, "-m", "tests.tiny_finetuning", str(folder), kind]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + PATIENCE_S
        while steps(folder) < after + 3 and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(number)
    return process.returncode


def steps(folder):
    """Return the step of the newest snapshot; 0 without one."""
    # No glob: it raises an error if a folder disappears meanwhile.
    names = (name for _, folders, _ in os.walk(folder / "store/.scratch") for name in folders)
    return max((int(name.rsplit("-")[-1]) for name in names if name.startswith("step-")), default=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "signals"),
    [("stsb", [signal.SIGKILL, signal.SIGTERM]), ("afs", [signal.SIGKILL]), ("stsb-cross", [signal.SIGKILL])],
)
def test_killed_fine_tuning_resumes_to_the_same_artifact(folder, kind, signals, caplog):
    site, expected = run(folder, "undisturbed", kind)
    for number in signals:
        before = steps(folder)
        assert end(folder, kind, number, before) == -number
        assert steps(folder) > before
    caplog.set_level(logging.INFO)
    caplog.clear()
    resumed_site, ref = run(folder, "store", kind)
    assert any("resuming at step" in message for message in caplog.messages)
    assert ref == expected
    stores = [site.open_store(), resumed_site.open_store()]
    assert len({store.manifest(ref).digest for store in stores}) == 1
    assert stores[0].scan(ref).collect().equals(stores[1].scan(ref).collect())
