"""Overhead of the engines: nearly empty shards through the real flow and store, and a fully cached run.

    python -m benchmarks.speed.bench_operation                     500 shards by threads; a cached run of a million rows
    python -m benchmarks.speed.bench_operation --shards 10000      as many shards, by threads
    python -m benchmarks.speed.bench_operation --workers 2         by two workers of a Dask cluster of this machine
    python -m benchmarks.speed.bench_operation --shards 0 --s3     the cached run alone, on a local S3 endpoint

A shard is one sentence through a translator of random weights, so that the cost is Prefect's, the store's and the
memory's. The flow then runs again: it lists the memory, checks each part, and joins the corpus with it. The cached run
goes through recipe `tiny` with artifacts of the size of recipe `nli`'s. Each step runs in its own process.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from bsl.tasks.stage.run_context import RunContext

ROWS = {"corpus": 1_000_000, "views": 3_000_000, "pairs": 1_000_000, "embeddings": 20_000}
CHECKPOINT_BYTES = 1_760_000_000  # BERT-base: online, target, two optimizer moments, in fp32
_BLOCK = 1 << 24


def served() -> None:
    """Start the server of a command, before Prefect is imported."""
    from bsl.flows.prefect_server.server import reserve_server

    server = reserve_server()
    if server is not None:
        server.start()
        server.wait()


def shards(folder: Path, workers: int, count: int) -> str:
    """Translate `count` sentences, one per shard, twice."""
    served()
    from prefect import flow

    from bsl.tasks.stage.run_context import RunContext
    from tests.cluster import dask_cluster
    from tests.flows.test_translate import hop_of, identified, translate_all
    from tests.tiny_marian import build_tiny_marian

    site = RunContext(store=str(folder / "store"), cache=str(folder / "cache"), device="cpu", threads=1)
    hop = hop_of(site, build_tiny_marian(folder / "model"))

    @flow
    def one_hop(site: Any, hop: Any) -> dict[str, object]:
        return translate_all(site, hop, identified([f"Tom sings {number}." for number in range(count)]), 1)

    told = []
    with dask_cluster(workers) if workers else nullcontext() as cluster:
        address = cluster.scheduler_address if cluster is not None else None
        site = site.model_copy(update={"cluster": address})
        for _ in range(2):
            started, spent = time.perf_counter(), time.process_time()
            figures = one_hop(site, hop)
            told.append((time.perf_counter() - started, time.process_time() - spent, figures["sentences"]))
    (cold, cpu, made), (warm, warm_cpu, again) = told
    if (made, again) != (count, 0):
        raise SystemExit(f"{made} and {again} shards were made, expected {count} and 0")
    where = f"{workers} workers of Dask" if workers else "here"
    return (
        f"| {count:,} shards, {where} | {cold:.0f} | {1000 * cpu / count:.1f} ms CPU a shard here | found again in "
        f"{warm:.1f} s, {1000 * warm_cpu / count:.1f} ms CPU a part |"
    )


@contextmanager
def s3_endpoint(folder: Path) -> Iterator[str]:
    """Start moto's S3 on loopback; yield a store's address, with the keys in this environment."""
    from tests.servers import free_port

    port = free_port()
    moto = [str(Path(sys.executable).with_name("moto_server")), "-H", "127.0.0.1", "-p", str(port)]
    folder.mkdir(parents=True)
    with (folder / "moto.log").open("wb") as log, subprocess.Popen(moto, stdout=log, stderr=log) as server:
        os.environ |= {
            "AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": "bench",
            "AWS_SECRET_ACCESS_KEY": "bench",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
        import s3fs

        files = s3fs.S3FileSystem()
        end = time.monotonic() + 60
        while True:
            try:
                files.mkdir("bench")
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.5)
            else:
                break
        try:
            yield "s3://bench/store"
        finally:
            server.terminate()


def prepare(site: RunContext) -> None:
    """Publish artifacts with the keys of recipe `tiny` and the sizes of `nli`."""
    from bsl.flows.pipeline import run
    from bsl.flows.recipes import recipe
    from bsl.storage.artifacts.manifest import Provenance
    from bsl.storage.artifacts.schemas import tables_of
    from bsl.tasks.stage.progress import planning

    store = site.open_store()
    with planning() as plan:
        run(recipe("tiny"), site)
    for step in plan:
        with store.draft(step.ref, Provenance(stage=step.stage, stage_version=1, config={})) as draft:
            for table in tables_of(step.ref.kind)[:1]:
                draft.write(rows_of(table, ROWS.get(step.ref.kind, 100)), table)
            (draft.folder / "page.md").write_text("# A page\n")
            if step.ref.kind == "checkpoint":
                with (draft.folder / "weights").open("wb") as file:
                    for _ in range(CHECKPOINT_BYTES // _BLOCK):
                        file.write(os.urandom(_BLOCK))


def rows_of(table: str, rows: int) -> pl.DataFrame:
    """Return rows with the declared columns."""
    from bsl.storage.artifacts import schemas

    schema: pl.Schema = getattr(schemas, table.upper())
    number = pl.int_range(rows, eager=True)
    frame = pl.DataFrame([number.alias("n")])
    texts = pl.format("A sentence of common length with the number {} in it.", "n")
    columns = []
    for name, dtype in schema.items():
        if table == "embeddings" and name == "embedding":
            vector = pl.Series(name, [[0.5] * 768] * rows, dtype=pl.Array(pl.Float32, 768))
            columns.append(pl.lit(vector))
        else:
            columns.append((texts if dtype == pl.String else pl.col("n") % 100).cast(dtype).alias(name))
    return frame.select(columns)


def warm(site: RunContext) -> str:
    """Time the whole cached run from the shell."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "benchmarks.speed.bench_operation", "--step"]
    told = subprocess.run(
        [*command, site.model_dump_json(exclude_unset=True)], check=True, capture_output=True, text=True
    )
    wall = time.perf_counter() - started
    store = site.open_store()
    size = sum(store.manifest(ref).size for ref in store.refs()) / 1e9
    where = site.store.partition("://")[0] if "://" in site.store else "folder"
    return f"| cached run, {size:.1f} GB, a million sentences, {where} | {wall:.1f} | {told.stdout.strip()} | |"


def walk(site: RunContext) -> str:
    """Run the cached pipeline in this process."""
    served()
    from bsl.flows.pipeline import pipeline

    store = site.open_store()
    stages = len(store.refs())
    started = time.perf_counter()
    for ref in store.refs():  # the check of each hit, in a process that has not read it yet
        store.defect(ref)
    checking = time.perf_counter() - started
    started = time.perf_counter()
    state = pipeline("tiny", None, site, return_state=True)
    flow = time.perf_counter() - started
    if not state.is_completed() or len(store.refs()) != stages:
        raise SystemExit(f"the run was not found made: {state.message}")
    return f"{checking:.1f} s to check, {1000 * flow / stages:.0f} ms a task of {stages}, Prefect's start among them"


def cached_run(folder: Path, url: str) -> str:
    """Prepare the cached run and time it."""
    from bsl.tasks.stage.run_context import RunContext

    site = RunContext(store=url, cache=str(folder / "cache"), device="cpu", threads=1)
    prepare(site)
    return warm(site)


def main() -> int:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=int, default=500)
    parser.add_argument("--workers", type=int, default=0, help="of a Dask cluster (0: this process makes all shards)")
    parser.add_argument("--no-warm", action="store_true", help="shards alone")
    parser.add_argument("--s3", action="store_true", help="the cached run on moto's S3 instead of a folder")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step:
        from bsl.tasks.stage.run_context import RunContext

        print(walk(RunContext.model_validate_json(arguments.step)))
        return 0
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        os.environ.setdefault("PREFECT_HOME", str(folder / "prefect"))  # its own database
        print("| step | seconds | | |\n|---|--:|---|---|")
        if arguments.shards:
            print(shards(folder / "shards", arguments.workers, arguments.shards), flush=True)
        if not arguments.no_warm:
            url = stack.enter_context(s3_endpoint(folder / "s3")) if arguments.s3 else str(folder / "run" / "store")
            print(cached_run(folder / "run", url), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
