"""Full or read-only disks and a slow object store: Prefect names the fault, and a rerun loses nothing."""

import random
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest
from moto.server import DomainDispatcherApplication, create_backend_app
from prefect import flow
from pydantic import BaseModel, ConfigDict
from werkzeug.serving import make_server

from bsl.storage.artifacts.refs import ArtifactRef, CorpusRef, ViewsRef
from bsl.storage.artifacts.store import Store
from bsl.tasks.stage.cached import StageContext, stage
from bsl.tasks.stage.run_context import RunContext

ROWS = 20_000


class Rows(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    rows: int


@stage(ref=CorpusRef, version=1)
def few_sentences(context: StageContext, config: Rows) -> None:
    """Write a corpus of some kilobytes."""
    ids = pl.Series("sentence_id", range(config.rows), dtype=pl.UInt64)
    frame = pl.DataFrame([ids]).with_columns(
        text=pl.format("sentence {}", "sentence_id"), source=pl.lit("t"), lang=pl.lit("en")
    )
    context.draft.write(frame)


@stage(ref=ViewsRef, version=1)
def many_views(context: StageContext, corpus: CorpusRef, config: Rows) -> None:
    """Write views that zstd cannot compress."""
    draw = random.Random(config.rows)
    texts = [draw.randbytes(40).hex() for _ in range(config.rows)]
    ids = pl.Series("sentence_id", range(config.rows), dtype=pl.UInt64)
    context.draft.write(pl.DataFrame([ids]).with_columns(method=pl.lit("toy"), text=pl.Series(texts)))


@flow
def both(site: RunContext) -> ViewsRef:
    return many_views(site, few_sentences(site, Rows(rows=10)), Rows(rows=ROWS))


@pytest.fixture
def disk(tmp_path) -> Iterator[Callable[[str], Path]]:
    """Mount a file system of 512 KiB; return a function that remounts it with other options."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", place], capture_output=True, text=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"no file system may be mounted here: {mounted.stderr.strip()}")

    def remount(options: str) -> Path:
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


def test_read_only_store_serves_cache_hits_and_rejects_writes(disk):
    place = disk("size=16m,rw")
    site = RunContext(store=str(place / "store"))
    few_sentences(site, Rows(rows=10))
    disk("ro")
    state = both(site, return_state=True)
    assert state.is_failed()
    assert "the file system is read-only. Choose a writable folder" in state.message
    disk("rw")
    assert both(site, return_state=True).is_completed()
    disk("ro")
    assert both(site, return_state=True).is_completed()
    disk("rw")


class SlowStore:
    """moto's S3 with faults: half of its answers come 0.2 s late, and a fifth of the requests get 503."""

    def __init__(self, seed: int) -> None:
        self._inner = DomainDispatcherApplication(create_backend_app)
        self._draw, self._lock = random.Random(seed), threading.Lock()
        self.late = self.refused = 0

    def __call__(self, environment, start):
        with self._lock:
            chance = self._draw.random()
            self.late += chance < 0.5
            self.refused += chance > 0.8
        if chance < 0.5:
            time.sleep(0.2)
        if chance > 0.8:
            environment["wsgi.input"].read(int(environment.get("CONTENT_LENGTH") or 0))
            start("503 Slow Down", [("Content-Type", "application/xml"), ("Connection", "close")])
            return [b"<Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>"]
        return self._inner(environment, start)


@pytest.mark.slow
def test_slow_or_failing_object_store_yields_identical_artifacts(monkeypatch, tmp_path, contents):
    slow = SlowStore(seed=16)
    server = make_server("127.0.0.1", 0, slow, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for name, value in {
        "AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{server.port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    store = Store("s3://slow-bucket/store", tmp_path / "cache")
    store.fs.mkdir("slow-bucket")
    site = RunContext(store=store.url, cache=str(tmp_path / "cache"))
    assert both(site, return_state=True).is_completed()
    assert both(site, return_state=True).is_completed()
    here = RunContext(store=str(tmp_path / "here"))
    both(here)
    assert contents(store) == contents(here.open_store())
    assert (slow.late > 5, slow.refused > 2) == (True, True)
    assert all(isinstance(ref, ArtifactRef) for ref in store.refs())
    server.shutdown()
