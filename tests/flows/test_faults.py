"""Full or read-only disks: Prefect names the fault, and a rerun loses nothing."""

import random
import subprocess

import polars as pl
import pytest
from prefect import flow

from bsl.storage.artifacts.refs import CorpusRef, ViewsRef
from bsl.storage.errors import StoreWriteError
from bsl.tasks.stage.cached import StageContext, stage
from bsl.tasks.stage.run_context import RunContext
from tests.flows.test_cached import Size, sentences

ROWS = 20_000


@stage(ref=ViewsRef, version=1)
def many_views(context: StageContext, corpus: CorpusRef) -> None:
    """Write views that zstd cannot compress."""
    draw = random.Random(ROWS)
    texts = [draw.randbytes(40).hex() for _ in range(ROWS)]
    ids = pl.Series("sentence_id", range(ROWS), dtype=pl.UInt64)
    context.draft.write(pl.DataFrame([ids]).with_columns(method=pl.lit("toy"), text=pl.Series(texts)))


@flow
def both(site: RunContext) -> ViewsRef:
    return many_views(site, sentences(site, Size(rows=10)))


@pytest.fixture
def disk(tmp_path):
    """Mount a file system of 512 KiB; return a function that remounts it with other options."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", place], capture_output=True, text=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"no file system may be mounted here: {mounted.stderr.strip()}")

    def remount(options):
        subprocess.run(["mount", "-o", f"remount,{options}", place], check=True)
        return place

    yield remount
    subprocess.run(["umount", place], check=True)


def test_full_disk_fails_the_run_and_rerun_reuses_artifacts(disk, contents, tmp_path):
    place = disk("size=512k")
    site = RunContext(store=str(place / "store"))
    state = both(site, return_state=True)
    assert state.is_failed()
    assert "the disk is full. Free space or choose another folder" in state.message
    store = site.open_store()
    (corpus,) = store.refs()
    made = store.manifest(corpus).created_at
    disk("size=16m")
    assert both(site, return_state=True).is_completed()
    assert store.manifest(corpus).created_at == made
    other = RunContext(store=str(tmp_path / "undisturbed"))
    both(other)
    assert contents(store) == contents(other.open_store())
    assert list((place / "store" / ".staging").iterdir()) == []


def test_read_only_store_rejects_writes(disk):
    site = RunContext(store=str(disk("size=16m,rw") / "store"))
    sentences(site, Size(rows=10))
    disk("ro")
    with pytest.raises(StoreWriteError, match=r"the file system is read-only\. Choose a writable folder"):
        sentences(site, Size(rows=11))
    disk("rw")
