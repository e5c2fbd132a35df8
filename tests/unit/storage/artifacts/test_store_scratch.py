"""Scratch folders: state of a long stage, for one stage at a time; deleting it makes nothing."""

import subprocess
import sys

from bsl.storage.artifacts.refs import CheckpointRef
from tests.servers import ROOT

REF = CheckpointRef(key=f"{1:064x}")
TRAIN = """
import sys
from bsl.storage.artifacts.refs import CheckpointRef
from bsl.storage.artifacts.store import Store
with Store(sys.argv[1]).own_scratch(CheckpointRef(key=sys.argv[2])) as folder:
    (folder / "step-1").mkdir()
    print(folder, flush=True)
    sys.stdin.read()
"""


def training(store):
    """Start a process that uses the scratch folder until its input ends; return it with its folder."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    run = subprocess.Popen([sys.executable, "-c", TRAIN, store.url, REF.key], cwd=ROOT, text=True, **pipes)
    return run, run.stdout.readline().strip()


def test_two_trainings_of_one_checkpoint_have_a_folder_each(store):
    """They wrote each other's job, error and speed, and the first to end deleted the other's snapshots."""
    store.drop_scratch(REF)
    assert not (store.workplace / ".scratch").exists()
    run, used = training(store)
    assert used == str(store.scratch(REF))
    with store.own_scratch(REF) as other:
        assert str(other) != used
        assert list(other.iterdir()) == []
    assert not other.exists()
    store.drop_scratch(REF)  # the second has published
    assert (store.scratch(REF) / "step-1").is_dir()
    run.kill()
    run.communicate()
    with store.own_scratch(REF) as resumed:
        assert str(resumed) == used
        assert (resumed / "step-1").is_dir()
    store.drop_scratch(REF)
    assert list((store.workplace / ".scratch" / "checkpoint").iterdir()) == []
