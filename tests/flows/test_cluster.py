"""Work on a Dask cluster leaves the bytes of one process."""

import itertools
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import dask
import polars as pl
import pytest
from distributed import Client, LocalCluster
from distributed.security import Security
from prefect import flow

from bsl.flows.own_options import OwnRequest
from bsl.flows.sweep.sweep import ablation
from bsl.models.encoder.config import EncoderConfig
from bsl.models.errors import ModelError
from bsl.storage.errors import SourceError
from bsl.storage.sources.model_sources import resolve_model
from bsl.tasks.embedding import shards as embed_shards
from bsl.tasks.embedding.embed import embed
from bsl.tasks.stage.cluster import ClusterError, calls_at_once, count_workers, found_here, on_cluster
from bsl.tasks.stage.progress import planning
from bsl.tasks.stage.run_context import RunContext
from tests.cluster import UNSEEN, dask_cluster, double, fail, slow
from tests.flows.test_own import WORDS
from tests.flows.test_translate import content, hop_of, identified, site_in, translate_all
from tests.interrupt import interrupted_when
from tests.servers import ROOT
from tests.tiny_encoder import write_tiny
from tests.tiny_marian import SENTENCES, build_tiny_marian
from tests.unit.tasks.embedding.test_embed import CORPUS, ROWS
from tests.unit.tasks.embedding.test_embed import site_in as site_of_corpus

COUNT, SHARD_ROWS = 8, 2


@pytest.fixture(scope="module")
def cluster():
    """Start one worker, because each imports torch and Prefect; test_workers.py has the order of calls on two."""
    with dask_cluster(1) as running:
        yield running.scheduler_address


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return build_tiny_marian(tmp_path_factory.mktemp("marian"))


@flow
def one_hop(site: RunContext, model: Path) -> dict[str, object]:
    return translate_all(site, hop_of(site, model), identified(SENTENCES[:COUNT]), SHARD_ROWS)


def test_dask_translation_shards_match_single_process_bytes(tmp_path, model, cluster):
    here, there = site_in(tmp_path / "here"), site_in(tmp_path / "there").model_copy(update={"cluster": cluster})
    one_hop(here, model)
    figures = one_hop(there, model)
    assert len(content(there)) == COUNT // SHARD_ROWS
    assert content(there) == content(here)
    assert figures["sentences"] == COUNT


def test_worker_with_another_store_is_reported_before_its_shards_are_read(tmp_path, model, cluster):
    """Memory is a store of its own in each process."""
    site = site_in(tmp_path).model_copy(update={"store": "memory://store", "cluster": cluster})
    apart = r"a worker made translations/\S+, but memory://store does not contain it\. Give all machines the same store"
    with pytest.raises(ClusterError, match=apart):
        one_hop(site, model)


def test_sigterm_ends_the_wait_for_a_cluster_without_workers(tmp_path, model):
    """Regression: the signal was deferred until the end of a shard that nobody translates."""
    with dask_cluster(0) as running:
        site = site_in(tmp_path).model_copy(update={"cluster": running.scheduler_address})
        hop, sentences = hop_of(site, model), identified(SENTENCES[:COUNT])
        too_late = threading.Event()

        def give_up():
            too_late.set()
            running.close()  # which cancels the calls

        asked = threading.Timer(3, os.kill, (os.getpid(), signal.SIGTERM))  # after the calls were sent
        given_up = threading.Timer(60, give_up)
        former = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        asked.start(), given_up.start()
        try:
            with pytest.raises(SystemExit):
                translate_all(site, hop, sentences, SHARD_ROWS)
        finally:
            given_up.cancel()
            signal.signal(signal.SIGTERM, former)
        assert not too_late.is_set()


def test_dask_embeddings_match_single_process_digest(tmp_path, cluster, monkeypatch):
    monkeypatch.setattr(embed_shards, "SHARD_ROWS", ROWS)
    model = resolve_model(str(write_tiny(tmp_path / "model")))
    config = EncoderConfig(model=model.identity, max_length=24)
    digests = []
    for name, address in (("here", None), ("there", cluster)):
        site = site_of_corpus(tmp_path / name, cluster=address)
        digests.append(site.open_store().manifest(embed(site, model, CORPUS, config, "fp32")).digest)
    assert digests[0] == digests[1]


@pytest.mark.slow
def test_dask_own_study_table_matches_single_process_table(tmp_path, cluster, monkeypatch, shallow):
    """Store and text have relative paths, which on a worker are in another folder."""
    monkeypatch.chdir(tmp_path)
    labels = [("good", "bad")[number % 2] for number in range(len(WORDS) ** 2)]
    texts = [f"The {a} beside the {b} was so." for a, b in itertools.product(WORDS, WORDS)]
    pl.DataFrame({"text": texts, "label": labels}).write_csv("reviews.csv")
    own = OwnRequest(text=("reviews.csv",), labels="reviews.csv", encoder=str(shallow))
    changes = {"training": {"max_steps": 2}, "evaluation": {"bootstrap": {"resamples": 200}}}
    tables = []
    for name, address in (("here", None), ("there", cluster)):
        site = RunContext(store=name, device="cpu", threads=1, cluster=address)
        swept = ablation("own", {"variant": ["crops", "TSDAE"]}, 1, changes, site=site, own=own)
        tables.append(site.open_store().scan(swept).collect())
    assert tables[0].equals(tables[1])
    assert {*tables[0]["label"]} == {"original encoder", "crops", "TSDAE"}


def test_unreachable_cluster_ends_a_command_before_its_first_stage(tmp_path):
    impatient = {**os.environ, "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "300ms"}
    command = [sys.executable, "-m", "bsl.flows.cli.main", "run", "tiny-avg", "--cluster", "tcp://127.0.0.1:9"]
    ended = subprocess.run(
        [*command, "--store", str(tmp_path / "store")],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=impatient,
    )
    assert (ended.returncode, "cluster tcp://127.0.0.1:9: no scheduler answers" in ended.stderr) == (1, True)
    assert RunContext(store=str(tmp_path / "store")).open_store().refs() == []


def test_on_cluster_preserves_call_order_and_clears_worker_cluster(cluster):
    site = RunContext(cluster=cluster)
    assert list(on_cluster(cluster, site, double, [(n,) for n in range(300)])) == [(None, 2 * n) for n in range(300)]


def test_calls_at_once_scales_with_cluster_threads():
    unseen = {**UNSEEN, "processes": False, "scheduler_port": 0}
    for threads, calls in ((2, 256), (200, 400)):
        with LocalCluster(n_workers=1, threads_per_worker=threads, **unseen) as large, Client(large) as client:
            assert calls_at_once(client) == calls


def test_on_cluster_raises_the_error_of_a_remote_call(cluster):
    with pytest.raises(ModelError, match="the third"):
        list(on_cluster(cluster, RunContext(), fail, [(n,) for n in range(6)]))


@pytest.mark.parametrize("lacking", ["bsl", "tests.cluster"])
def test_worker_without_the_package_fails_the_call_and_is_not_called_dead(tmp_path, lacking):
    """Regression: such a worker died of the call, and the run waited for another one without end."""
    tmp_path.joinpath("sitecustomize.py").write_text(
        f"import sys\nsys.modules[{lacking!r}] = None  # as if it were not installed\n"
    )
    with dask_cluster(0) as running:
        options = ("--nthreads=1", "--no-nanny", "--no-dashboard")
        worker = subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_worker", running.scheduler_address, *options],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])},
            stderr=subprocess.DEVNULL,
        )
        try:
            with pytest.raises(ClusterError, match=rf"cannot read its call \(.*{lacking}.*\)\. Use the same version"):
                list(on_cluster(running.scheduler_address, RunContext(), double, [(3,)]))
            assert worker.poll() is None
        finally:
            worker.terminate()
            worker.wait(60)


def test_keyboard_interrupt_cancels_pending_cluster_calls(cluster, tmp_path):
    with pytest.raises(KeyboardInterrupt), interrupted_when(lambda: any(tmp_path.iterdir())):
        list(on_cluster(cluster, RunContext(), slow, [(str(tmp_path), n) for n in range(200)]))
    time.sleep(0.5)  # the running call ends
    begun = len(list(tmp_path.iterdir()))
    time.sleep(1)  # two calls would begin
    assert len(list(tmp_path.iterdir())) == begun < 50


def test_unreachable_dask_scheduler_raises_cluster_error():
    refused = pytest.raises(ClusterError, match=r"no scheduler answers .*\. Start one with `dask scheduler`")
    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}), refused:
        list(on_cluster("tcp://127.0.0.1:9", RunContext(), double, [(1,)]))


def test_tls_scheduler_needs_certificates_which_dask_may_load_by_a_function(monkeypatch):
    """`distributed.client.security-loader` names the function."""
    with pytest.raises(ClusterError, match=r"no scheduler answers \(TLS expects a `ssl_context`"):
        count_workers("tls://127.0.0.1:9")
    temporary = Security.temporary()
    monkeypatch.setitem(sys.modules, "certificates", SimpleNamespace(load=lambda _: temporary))
    settings = dask.config.set({"distributed.client.security-loader": "certificates.load"})
    quiet = {**UNSEEN, "processes": False}
    with settings, LocalCluster(n_workers=0, protocol="tls", security=temporary, **quiet) as made:
        assert count_workers(made.scheduler_address) == 0


@pytest.mark.parametrize(
    ("greeting", "reason"),
    [
        (b"", "another program listens"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "another program listens"),
        (bytes(64), "unpack_from"),
    ],
)
def test_another_program_at_the_address_of_a_scheduler_raises_cluster_error(greeting, reason):
    """A dashboard is silent until it is asked; eight bytes of text are a length of exabytes to Dask."""
    refused = pytest.raises(ClusterError, match=rf"no scheduler answers \({reason}")
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:

        def answer():
            with listening.accept()[0] as connection:
                connection.sendall(greeting)
                while connection.recv(1024):
                    pass

        threading.Thread(target=answer, daemon=True).start()
        with dask.config.set({"distributed.comm.timeouts.connect": "1s"}), refused:
            count_workers(f"tcp://127.0.0.1:{listening.getsockname()[1]}")


def test_worker_rejects_missing_or_different_model_folder(tmp_path):
    model = resolve_model(str(write_tiny(tmp_path / "model")))
    other = model.model_copy(update={"identity": "sha256:0000"})
    with pytest.raises(SourceError, match=r"this worker has sha256:.* \(the sender has sha256:0000\)"):
        found_here(RunContext(), other)
    gone = model.model_copy(update={"location": tmp_path / "gone"})
    with pytest.raises(SourceError, match="no such folder"):
        found_here(RunContext(), gone)
    embedded = resolve_model("embedded:bert-mini")
    moved = embedded.model_copy(update={"location": tmp_path / "elsewhere"})
    assert found_here(RunContext(), moved) == embedded


def test_dry_run_makes_no_calls():
    with planning():
        assert list(on_cluster("tcp://127.0.0.1:9", RunContext(), fail, [(3,), (4,)])) == []
