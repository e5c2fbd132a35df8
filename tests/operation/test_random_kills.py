"""The short form of killing.py: one run is killed once at a random moment, and run again to its end."""

import sys

import pytest

from tests.operation.killing import kill_lives


@pytest.mark.slow
@pytest.mark.timeout(1800)  # three commands start, each with a server; on a busy machine each takes half a minute
def test_randomly_killed_run_resumes_to_the_same_artifacts(tmp_path, capsys):
    seed = 1
    done, faults = kill_lives(tmp_path, 1, seed)
    with capsys.disabled():
        sys.stdout.write(f"\n  killing.py --seed {seed} --kills 1: {dict(done)}\n")
    assert (done.total(), faults) == (1, [])
