"""Shards of translation are tasks: nothing is done twice or lost, and the bytes are the same after any interruption."""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from prefect import flow
from prefect.settings import get_current_settings

from bsl.models.corpus.normalize import sentence_ids
from bsl.models.errors import TranslationError, TranslationStoppedError
from bsl.models.runtime.partitions import in_range
from bsl.models.translation.config import Pin, TranslatorConfig
from bsl.tasks.stage.progress import listening
from bsl.tasks.stage.run_context import RunContext
from bsl.tasks.stage.shards import plan_shards
from bsl.tasks.translation.translate import MemoryLookup, translate_missing
from bsl.tasks.translation.translator import ResolvedTranslator, find_translator
from tests.tiny_marian import SENTENCES, build_tiny_marian

ROOT = Path(__file__).parents[2]
COUNT, SHARD_ROWS = 240, 8
FEWER = 48  # sentences for a run that is stopped once


@flow
def one_hop(site: RunContext, hop: ResolvedTranslator, count: int, shard_rows: int) -> dict[str, object]:
    """Translate the first `count` sentences."""
    return translate_all(site, hop, identified(SENTENCES[:count]), shard_rows)


def translate_all(
    site: RunContext, hop: ResolvedTranslator, sentences: pl.LazyFrame, shard_rows: int
) -> dict[str, object]:
    store = site.open_store()
    with store.workspace() as scratch:
        recall = MemoryLookup(store, hop.fingerprint, scratch, 1, 100)
        return dict(translate_missing(site, hop, lambda number: in_range(sentences, number, 1), recall, shard_rows))


def identified(texts: list[str]) -> pl.LazyFrame:
    return pl.LazyFrame({"text": texts}).select(sentence_ids(pl.col("text")).alias("sentence_id"), "text")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return build_tiny_marian(tmp_path_factory.mktemp("marian"))


@pytest.fixture
def site(tmp_path):
    return site_in(tmp_path)


def site_in(folder):
    return RunContext(store=str(folder / "store"), cache=str(folder / "cache"), device="cpu", threads=1)


def hop_of(site: RunContext, model: Path) -> ResolvedTranslator:
    # Languages without a smoke test: random weights would fail one.
    return find_translator(site, TranslatorConfig(model=str(model), source_lang="sv", target_lang="nb"))


def content(site):
    """Return the sha256 of every table file of the store, by path."""
    root = Path(site.store)
    files = sorted(root.glob("translations/*/*/*.parquet"))
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_every_sentence_is_translated_once_also_of_a_grown_corpus(site, model):
    hop = hop_of(site, model)
    cost = one_hop.fn(site, hop, 100, 32)
    assert cost["sentences"] == 100
    store = site.open_store()
    memory = dict(store.intact(f"translations/{hop.fingerprint}"))
    table = pl.concat(memory.values()).collect()
    assert table.height == table["sentence_id"].n_unique() == 100
    parts = [store.manifest(part).rows for part in memory]
    assert sorted(parts) == [4, 32, 32, 32]
    assert cost["target_tokens"] == table["n_tokens"].sum()
    cut = sum(int(str(store.manifest(part).figures["cut_translations"])) for part in memory)
    assert 0 < cut == cost["cut_translations"]  # random weights repeat themselves
    before = content(site)
    for count, new in ((100, 0), (102, 2)):
        assert one_hop.fn(site, hop, count, 32)["sentences"] == new
    after = content(site)
    assert before.items() <= after.items()
    assert len(after) == len(before) + 1


def test_shards_are_independent_of_which_others_are_finished(tmp_path):
    sentences = identified(SENTENCES[:100])
    folders = [tmp_path / "whole", tmp_path / "rest"]
    for folder in folders:
        folder.mkdir()
    whole = plan_shards([sentences.collect()], 16, folders[0])
    finished = pl.concat([whole[2].read(), whole[5].read(), whole[-1].read()])
    missing = sentences.join(finished.lazy(), on="sentence_id", how="anti").collect()
    rest = plan_shards(missing.iter_slices(9), 16, folders[1])
    assert [shard.digest for shard in rest] == [whole[n].digest for n in (0, 1, 3, 4)]
    lengths = [pl.col("text").str.len_chars()]
    assert whole[0].read().select(*lengths).max().item() <= whole[-1].read().select(*lengths).min().item()


def test_translator_fingerprint_depends_on_the_content_of_its_files(site, model, tmp_path):
    copy = shutil.copytree(model, tmp_path / "elsewhere")
    (copy / "vocab.json").write_text((copy / "vocab.json").read_text() + " ")
    assert hop_of(site, copy).fingerprint != hop_of(site, model).fingerprint


def test_translator_that_differs_from_its_pins_translates_nothing(site, model):
    pin = Pin(source=SENTENCES[0], translation="Anna läser en lång bok hemma.")
    hop = find_translator(site, TranslatorConfig(model=str(model), source_lang="sv", target_lang="nb", pinned=(pin,)))
    assert hop.fingerprint == hop_of(site, model).fingerprint
    with pytest.raises(TranslationError, match=r"1 of 1 differ .* expected 'Anna läser en lång bok hemma.', found '"):
        one_hop.fn(site, hop, 8, 8)
    assert content(site) == {}


def undisturbed(folder, model, count):
    site = site_in(folder / "undisturbed")
    one_hop.fn(site, hop_of(site, model), count, SHARD_ROWS)
    return content(site)


def test_sigterm_finishes_the_current_shard_and_rerun_resumes(site, model, tmp_path, caplog):
    begun, received = [], []

    def stop_in_second(event, _):
        if event == "makes":
            begun.append(event)
            if len(begun) == 2:
                os.kill(os.getpid(), signal.SIGTERM)

    former = signal.signal(signal.SIGTERM, lambda *_: received.append("after the block"))
    try:
        with listening(stop_in_second), pytest.raises(TranslationStoppedError, match=f"with 16 of {FEWER} missing"):
            one_hop.fn(site, hop_of(site, model), FEWER, SHARD_ROWS)
    finally:
        signal.signal(signal.SIGTERM, former)
    assert received == ["after the block"]
    assert "They are saved; run again to translate the others" in caplog.text
    assert len(content(site)) == len(begun) == 2, "the shard at hand was published, and no other was begun"
    assert one_hop.fn(site, hop_of(site, model), FEWER, SHARD_ROWS)["sentences"] == FEWER - SHARD_ROWS * 2
    assert content(site) == undisturbed(tmp_path, model, FEWER)


@pytest.mark.slow
def test_two_workers_sharing_a_store_produce_the_same_bytes(site, model, tmp_path):
    script = f"import runpy; runpy.run_path({__file__!r}, run_name='worker')"
    environment = os.environ | {
        "PREFECT_API_URL": str(get_current_settings().api.url), "PYTHONPATH": str(ROOT),
        "WORKER_STORE": site.store, "WORKER_MODEL": str(model), "WORKER_CACHE": str(site.cache),
    }  # fmt: skip
    worker = subprocess.Popen([sys.executable, "-c", script], env=environment, cwd=ROOT)
    while not list(Path(site.store).glob("translations/*/*/manifest.json")):
        assert worker.poll() is None, "the worker ended before it published"
        time.sleep(0.01)
    one_hop(site, hop_of(site, model), COUNT, SHARD_ROWS)
    assert worker.wait(timeout=120) == 0
    assert content(site) == undisturbed(tmp_path, model, COUNT)


if __name__ == "worker":
    place = RunContext(store=os.environ["WORKER_STORE"], cache=os.environ["WORKER_CACHE"], device="cpu", threads=1)
    one_hop(place, hop_of(place, Path(os.environ["WORKER_MODEL"])), COUNT, SHARD_ROWS)
