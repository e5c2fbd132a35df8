"""Shards of translation are tasks: nothing is done twice or lost, and the bytes are the same after any interruption."""

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import polars as pl
import pytest
from prefect import flow
from prefect.settings import get_current_settings

from bsl.models.corpus.normalize import sentence_ids
from bsl.models.errors import TranslationError
from bsl.models.runtime.partitions import in_range
from bsl.models.translation.config import Pin, TranslatorConfig
from bsl.storage.sources.sources import SourceSpec
from bsl.tasks.corpus.config import IngestConfig
from bsl.tasks.corpus.ingest import ingest, locate_sources
from bsl.tasks.stage.run_context import RunContext
from bsl.tasks.stage.shards import plan_shards
from bsl.tasks.translation.translate import MemoryLookup, translate_missing
from bsl.tasks.translation.translator import ResolvedTranslator, find_translator
from tests.tiny_marian import SENTENCES, build_tiny_marian

ROOT = Path(__file__).parents[2]
COUNT, SHARD_ROWS = 240, 8
FEWER = 48  # sentences for a run that is stopped once
PARTS = "translations/*/*/manifest.json"


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
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_marian(tmp_path_factory.mktemp("marian"))


@pytest.fixture
def site(tmp_path: Path) -> RunContext:
    return site_in(tmp_path)


def site_in(folder: Path) -> RunContext:
    return RunContext(store=str(folder / "store"), cache=str(folder / "cache"), device="cpu", threads=1)


def hop_of(site: RunContext, model: Path) -> ResolvedTranslator:
    # Languages without a smoke test: random weights would fail one.
    return find_translator(site, TranslatorConfig(model=str(model), source_lang="sv", target_lang="nb"))


def content(site: RunContext) -> dict[str, str]:
    """Return the sha256 of every table file of the store, by path."""
    root = Path(site.store)
    files = sorted(root.glob("translations/*/*/*.parquet"))
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_every_sentence_is_translated_once(site: RunContext, model: Path) -> None:
    hop = hop_of(site, model)
    cost = one_hop(site, hop, 100, 32)
    assert cost["sentences"] == 100
    store = site.open_store()
    memory = dict(store.intact(f"translations/{hop.fingerprint}"))
    table = pl.concat(memory.values()).collect()
    assert table.height == table["sentence_id"].n_unique() == 100
    parts = [store.manifest(part).rows for part in memory]
    assert sorted(parts) == [4, 32, 32, 32]
    assert cost["target_tokens"] == table["n_tokens"].sum()
    assert one_hop(site, hop, 100, 32)["sentences"] == 0


def test_grown_corpus_translates_only_new_sentences(site: RunContext, model: Path) -> None:
    hop = hop_of(site, model)
    one_hop(site, hop, 200, 64)
    before = content(site)
    assert one_hop(site, hop, 202, 64)["sentences"] == 2
    after = content(site)
    assert before.items() <= after.items()
    assert len(after) == len(before) + 1


def test_shards_are_independent_of_which_others_are_finished(tmp_path: Path) -> None:
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


def test_translator_fingerprint_depends_on_content_not_on_path(site: RunContext, model: Path, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere"
    copy.mkdir()
    for file in model.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    assert hop_of(site, copy).fingerprint == hop_of(site, model).fingerprint
    (copy / "vocab.json").write_text((copy / "vocab.json").read_text() + " ")
    assert hop_of(site, copy).fingerprint != hop_of(site, model).fingerprint
    beam = TranslatorConfig(model=str(model), source_lang="sv", target_lang="nb", beam=2)
    assert find_translator(site, beam).fingerprint != hop_of(site, model).fingerprint


def test_translator_that_differs_from_its_pins_translates_nothing(site: RunContext, model: Path) -> None:
    pin = Pin(source=SENTENCES[0], translation="Anna läser en lång bok hemma.")
    hop = find_translator(site, TranslatorConfig(model=str(model), source_lang="sv", target_lang="nb", pinned=(pin,)))
    assert hop.fingerprint == hop_of(site, model).fingerprint
    with pytest.raises(TranslationError, match=r"1 of 1 differ .* expected 'Anna läser en lång bok hemma.', found '"):
        one_hop(site, hop, 8, 8)
    assert content(site) == {}


def start(site: RunContext, model: Path, log: Path | None = None, **settings: str) -> subprocess.Popen[bytes]:
    url = get_current_settings().api.url
    script = (
        f"import sys; sys.path[:0] = [{str(ROOT)!r}]; import runpy; runpy.run_path({__file__!r}, run_name='worker')"
    )
    environment = os.environ | {
        "PREFECT_API_URL": str(url), "WORKER_STORE": site.store, "WORKER_MODEL": str(model),
        "WORKER_CACHE": str(site.cache), **settings,
    }  # fmt: skip
    with (log or Path(os.devnull)).open("wb") as errors:
        return subprocess.Popen([sys.executable, "-c", script], env=environment, cwd=ROOT, stderr=errors)


def wait_for_parts(site: RunContext, worker: subprocess.Popen[bytes], count: int) -> None:
    deadline = time.monotonic() + 120
    while len(list(Path(site.store).glob(PARTS))) < count:
        assert worker.poll() is None, "the worker ended before it was killed"
        assert time.monotonic() < deadline, "the worker published nothing"
        time.sleep(0.01)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, model: Path) -> dict[str, str]:
    site = site_in(tmp_path_factory.mktemp("undisturbed"))
    one_hop(site, hop_of(site, model), COUNT, SHARD_ROWS)
    return content(site)


@pytest.mark.slow
def test_killed_translation_resumes_to_the_uninterrupted_bytes(
    site: RunContext, model: Path, undisturbed: dict[str, str]
) -> None:
    worker = start(site, model, WORKER_SIGNAL="SIGKILL", WORKER_SIGNAL_AT="4")
    assert worker.wait(timeout=120) == -signal.SIGKILL
    done = len(content(site))
    assert done == 3, "the shard that was about to be published is lost, and no other"
    assert one_hop(site, hop_of(site, model), COUNT, SHARD_ROWS)["sentences"] == COUNT - SHARD_ROWS * done
    assert content(site) == undisturbed


@pytest.mark.slow
def test_ten_random_kills_leave_the_uninterrupted_bytes(
    site: RunContext, model: Path, undisturbed: dict[str, str]
) -> None:
    worker = start(site, model, WORKER_KILLS="10")
    assert worker.wait(timeout=300) == 0
    assert content(site).items() <= undisturbed.items()
    rest = one_hop(site, hop_of(site, model), COUNT, SHARD_ROWS)
    assert int(str(rest["sentences"])) > 0, "the kills came too late to interrupt anything"
    assert content(site) == undisturbed


def test_sigterm_finishes_the_current_shard_and_rerun_resumes(site: RunContext, model: Path, tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    worker = start(site, model, log, WORKER_COUNT=str(FEWER), WORKER_SIGNAL="SIGTERM", WORKER_SIGNAL_AT="2")
    assert worker.wait(timeout=120) == -signal.SIGTERM
    told = log.read_text()
    assert "SIGTERM: finishing the current unit of work first" in told
    assert "They are saved; run again to translate the others" in told
    done = len(content(site))
    assert done == 2, "the shard at hand was published, and no other"
    scratch = (Path(site.store) / ".scratch").rglob("*")
    assert not [path for path in scratch if path.is_file()], "a shard was begun and not finished"
    assert one_hop(site, hop_of(site, model), FEWER, SHARD_ROWS)["sentences"] == FEWER - SHARD_ROWS * done
    undisturbed = site_in(tmp_path / "undisturbed")
    one_hop(undisturbed, hop_of(undisturbed, model), FEWER, SHARD_ROWS)
    assert content(site) == content(undisturbed)


@pytest.mark.slow
def test_two_workers_sharing_a_store_produce_the_same_bytes(
    site: RunContext, model: Path, undisturbed: dict[str, str]
) -> None:
    worker = start(site, model)
    wait_for_parts(site, worker, 1)
    one_hop(site, hop_of(site, model), COUNT, SHARD_ROWS)
    assert worker.wait(timeout=120) == 0
    assert content(site) == undisturbed


def test_duplicate_sentences_are_translated_once(site: RunContext, model: Path, tmp_path: Path) -> None:
    """Sentences come five times, as in SNLI; the corpus contains each once, so each is translated once."""
    lines = [text for text in SENTENCES[:40] for _ in range(5)]
    (tmp_path / "lines.txt").write_text("\n".join(lines), encoding="utf-8")

    @flow
    def translate_lines() -> dict[str, object]:
        config = IngestConfig(sources=(SourceSpec(path=str(tmp_path / "lines.txt")),))
        corpus = ingest(site, locate_sources(site, config), config)
        return translate_all(site, hop_of(site, model), site.open_store().scan(corpus), SHARD_ROWS)

    assert translate_lines()["sentences"] == 40


def kill_children(count: int, translate_all: Callable[[], object], store: Path) -> None:
    """Start the work ``count`` times; kill it each time after 0 or 1 more shards and a random delay.

    Children are forked with all modules imported, so that they spend their time on the work and not on starting Python.
    """
    chance = random.Random(4)
    for _ in range(count):
        parts, enough = len(list(store.glob(PARTS))), chance.randrange(2)
        child = os.fork()
        if child == 0:
            translate_all()
            os._exit(0)
        while len(list(store.glob(PARTS))) < parts + enough:
            time.sleep(0.005)
        time.sleep(chance.uniform(0, 0.15))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def signal_at(count: int, number: signal.Signals) -> None:
    """Send this process a signal when its ``count``-th shard is about to be published, at any load of the machine."""
    published = 0

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal published
        if event == "os.rename" and "/translations/" in str(arguments[1]):
            published += 1
            if published == count:
                os.kill(os.getpid(), number)

    sys.addaudithook(watch)


if __name__ == "worker":
    place = RunContext(store=os.environ["WORKER_STORE"], cache=os.environ["WORKER_CACHE"], device="cpu", threads=1)
    found = hop_of(place, Path(os.environ["WORKER_MODEL"]))
    if "WORKER_SIGNAL" in os.environ:
        signal_at(int(os.environ["WORKER_SIGNAL_AT"]), signal.Signals[os.environ["WORKER_SIGNAL"]])
    if "WORKER_KILLS" in os.environ:
        import bsl.models.translation.ctranslate
        import bsl.models.translation.smoke_test  # noqa: F401 - for the children

        work = partial(one_hop, place, found, COUNT, SHARD_ROWS)
        kill_children(int(os.environ["WORKER_KILLS"]), work, Path(place.store))
    else:
        one_hop(place, found, int(os.environ.get("WORKER_COUNT", COUNT)), SHARD_ROWS)
