"""A sweep that is killed with signal 9 again and again ends with the table of an undisturbed sweep.

BSL_KILLS=5 is the long form; BSL_KILL_SEED draws other moments.
"""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bsl.storage.artifacts.store import Store

HERE = Path(__file__).parent
KILLS = int(os.environ.get("BSL_KILLS", "1"))
OVER = {"training.objective.momentum": [0.5, 1.0]}


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_killed_sweep_resumes_to_the_uninterrupted_table(tmp_path, alone, environment, contents):
    seed = int(os.environ.get("BSL_KILL_SEED", "1"))
    draw = random.Random(seed)
    training = {**alone["training"], "max_steps": 20, "eval_every": 10}
    overrides = json.dumps({**alone, "training": training})

    def sweep(event: int, *stores: Store) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, str(HERE / "sweep_and_die.py"), str(event), "tiny", json.dumps(OVER), overrides]
        command += [store.url for store in stores]
        return subprocess.run(command, env={**environment, "PYTHONPATH": str(HERE.parents[1])}, capture_output=True)

    killed, undisturbed = (Store(str(tmp_path / name)) for name in ("killed", "undisturbed"))
    for _ in range(KILLS):
        process = sweep(draw.randint(1, 5), killed)
        assert process.returncode == -signal.SIGKILL, process.stderr.decode()
    process = sweep(0, killed, undisturbed)
    assert process.returncode == 0, process.stderr.decode()
    tables = [store.scan(ref).collect() for store in (killed, undisturbed) for ref in store.refs("sweep")]
    assert len(tables) == 2
    assert tables[0].equals(tables[1])
    assert contents(killed) == contents(undisturbed)
