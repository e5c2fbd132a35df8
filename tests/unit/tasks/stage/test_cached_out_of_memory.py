"""A stage that runs out of memory is aborted and publishes nothing; a rerun makes the artifact."""

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bsl.storage.artifacts.garbage_collection import leftovers
from bsl.tasks.stage.run_context import RunContext
from tests.starved import hungry_views

ROOT = Path(__file__).parents[4]


def test_stage_out_of_memory_publishes_nothing_and_rerun_succeeds(tmp_path):
    sites = [RunContext(store=str(tmp_path / name)) for name in ("starved", "undisturbed")]
    command = [sys.executable, "-m", "tests.starved", sites[0].store]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert ended.returncode == -signal.SIGABRT, ended.stderr
    assert "memory allocation" in ended.stderr
    store = sites[0].open_store()
    assert store.refs() == []
    (left,) = store.workplace.glob(".staging/*")
    assert list(left.glob("views-*.parquet"))
    refs = [hungry_views(site, 1000) for site in sites]
    assert len({site.open_store().check(ref).digest for site, ref in zip(sites, refs, strict=True)}) == 1
    for path in (left, *left.rglob("*")):
        os.utime(path, (0, 0))
    assert leftovers(store, timedelta(days=1), datetime.now(UTC)) == [left]
