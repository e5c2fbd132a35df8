"""Shards as tasks: nothing twice, nothing lost, the same bytes whatever happened on the way."""

import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from prefect import flow
from prefect.settings import get_current_settings

from models.text.normalize import sentence_ids
from models.translation.config import TranslatorConfig
from storage.memory import TranslationMemory
from tasks.site import Site
from tasks.translate import Hop, find_hop, plan_shards, translate_missing
from tests.tiny_marian import SENTENCES, build_tiny_marian

ROOT = Path(__file__).parents[2]
COUNT, SHARD_ROWS = 128, 8


@flow
def one_hop(site: Site, hop: Hop, count: int, shard_rows: int) -> dict[str, object]:
    """Translate the first sentences of the list."""
    return dict(translate_missing(site, hop, identified(SENTENCES[:count]), shard_rows))


def identified(texts: list[str]) -> pl.LazyFrame:
    return pl.LazyFrame({"text": texts}).select(sentence_ids(pl.col("text")).alias("sentence_id"), "text")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_marian(tmp_path_factory.mktemp("marian"))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(store=str(tmp_path / "store"), device="cpu", threads=1)


def hop_of(site: Site, model: Path) -> Hop:
    # Random weights would not pass the smoke test of a language that has one.
    return find_hop(site, TranslatorConfig(model=str(model), source_lang="sv", target_lang="nb"))


def content(site: Site) -> dict[str, str]:
    """Every table file of the store with its sha256."""
    root = Path(site.store)
    files = sorted(root.glob("translations/*/*/*.parquet"))
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_every_sentence_is_translated_once(site: Site, model: Path) -> None:
    hop = hop_of(site, model)
    cost = one_hop(site, hop, 100, 32)
    assert cost["sentences"] == 100
    memory = TranslationMemory(site.open_store(), hop.fingerprint)
    table = memory.translations().collect()
    assert table.height == table["sentence_id"].n_unique() == 100
    parts = [site.open_store().manifest(part).rows for part in memory.parts()]
    assert sorted(parts) == [4, 32, 32, 32]
    assert cost["target_tokens"] == table["n_tokens"].sum()
    assert one_hop(site, hop, 100, 32)["sentences"] == 0


def test_a_corpus_grown_by_one_per_cent_translates_one_per_cent(site: Site, model: Path) -> None:
    hop = hop_of(site, model)
    one_hop(site, hop, 200, 64)
    before = content(site)
    assert one_hop(site, hop, 202, 64)["sentences"] == 2
    after = content(site)
    assert before.items() <= after.items()
    assert len(after) == len(before) + 1


def test_shards_do_not_hang_on_which_others_are_finished(tmp_path: Path) -> None:
    sentences = identified(SENTENCES[:100])
    whole = plan_shards(sentences, 16, tmp_path / "whole.parquet")
    finished = pl.concat([whole[2].read(), whole[5].read(), whole[-1].read()])
    rest = plan_shards(sentences.join(finished.lazy(), on="sentence_id", how="anti"), 16, tmp_path / "rest.parquet")
    assert [shard.digest for shard in rest] == [whole[n].digest for n in (0, 1, 3, 4)]
    lengths = [pl.col("text").str.len_chars()]
    assert whole[0].read().select(*lengths).max().item() <= whole[-1].read().select(*lengths).min().item()


def test_the_fingerprint_is_the_content_and_not_the_place(site: Site, model: Path, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere"
    copy.mkdir()
    for file in model.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    assert hop_of(site, copy).fingerprint == hop_of(site, model).fingerprint
    (copy / "vocab.json").write_text((copy / "vocab.json").read_text() + " ")
    assert hop_of(site, copy).fingerprint != hop_of(site, model).fingerprint
    beam = TranslatorConfig(model=str(model), source_lang="sv", target_lang="nb", beam=2)
    assert find_hop(site, beam).fingerprint != hop_of(site, model).fingerprint


def start(site: Site, model: Path) -> subprocess.Popen[bytes]:
    url = get_current_settings().api.url
    script = (
        f"import sys; sys.path[:0] = [{str(ROOT)!r}]; import runpy; runpy.run_path({__file__!r}, run_name='worker')"
    )
    environment = os.environ | {"PREFECT_API_URL": str(url), "WORKER_STORE": site.store, "WORKER_MODEL": str(model)}
    return subprocess.Popen([sys.executable, "-c", script], env=environment, cwd=ROOT, stderr=subprocess.DEVNULL)


def wait_for_parts(site: Site, worker: subprocess.Popen[bytes], count: int) -> None:
    deadline = time.monotonic() + 120
    while len(list(Path(site.store).glob("translations/*/*/manifest.json"))) < count:
        assert worker.poll() is None, "the worker ended before it was killed"
        assert time.monotonic() < deadline, "the worker published nothing"
        time.sleep(0.01)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, model: Path) -> dict[str, str]:
    site = Site(store=str(tmp_path_factory.mktemp("undisturbed") / "store"), device="cpu", threads=1)
    one_hop(site, hop_of(site, model), COUNT, SHARD_ROWS)
    return content(site)


def test_a_killed_run_ends_with_the_bytes_of_an_undisturbed_one(
    site: Site, model: Path, undisturbed: dict[str, str]
) -> None:
    worker = start(site, model)
    wait_for_parts(site, worker, 3)
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    done = len(content(site))
    assert 3 <= done < COUNT // SHARD_ROWS
    assert one_hop(site, hop_of(site, model), COUNT, SHARD_ROWS)["sentences"] == COUNT - SHARD_ROWS * done
    assert content(site) == undisturbed


def test_two_workers_on_one_store_give_the_same(site: Site, model: Path, undisturbed: dict[str, str]) -> None:
    worker = start(site, model)
    wait_for_parts(site, worker, 1)
    one_hop(site, hop_of(site, model), COUNT, SHARD_ROWS)
    assert worker.wait(timeout=120) == 0
    assert content(site) == undisturbed


if __name__ == "worker":
    place = Site(store=os.environ["WORKER_STORE"], device="cpu", threads=1)
    one_hop(place, hop_of(place, Path(os.environ["WORKER_MODEL"])), COUNT, SHARD_ROWS)
