"""Sentences through one translator: what its memory lacks is cut into shards, and each shard is one cached task.

Design choices
- A shard is a slice of the missing sentences sorted by (length, sentence_id), always of the same number of rows. Shards
  that are finished leave the memory's gaps at whole slices, so a killed run cuts the rest exactly as the first one
  would have, and ends with the same bytes.
- A shard's key is its translator and its sentences. Two workers that translate the same shard publish the same
  artifact; the second finds it and goes on.
- Shards run in scattered order, another one in each process: the rate of the first shards tells the time left, though
  lengths differ, and two workers rarely meet.
- The translator is loaded, and smoke-tested, when the first shard needs it: a run that lacks nothing never does.
- SIGTERM stops between two shards: what was begun is published, and the next run goes on from there.

What a translator's memory holds of some sentences, put into ranges of their ids.

A memory is in the order in which it was translated: by shard, and within a shard by length. To be joined with sentences
that are in the order of their ids, it is read once, part by part, and what the sentences need of it is set aside by id.
"""

from __future__ import annotations

import hashlib
import logging
import math
import time
from contextlib import closing
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import polars as pl

from models.errors import TranslationStoppedError, TranslatorLoadError
from models.runtime.partitions import Partitions
from models.translation.config import TRANSLATION_VERSION
from storage.artifacts.refs import ArtifactRef
from tasks.stage.cached import Stage, StageContext, stage
from tasks.stage.device import cores, device_of, limit_threads
from tasks.stage.shards import Shard, plan_shards, run_shards, scattered
from tasks.stage.sigterm import stop_requested
from tasks.stage.ui import progress_of
from tasks.translation.translator import ResolvedTranslator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pydantic import JsonValue

    from models.runtime.partitions import Ranges
    from models.runtime.progress import OnProgress
    from models.translation.batching import BatchedTranslator
    from models.translation.config import TranslatorConfig
    from storage.artifacts.store import Store
    from storage.artifacts.translation_memory import TranslationMemory
    from tasks.stage.run_context import RunContext


logger = logging.getLogger(__name__)

CPU_SHARD_ROWS = 2048  # ten seconds and more, so that Prefect's part of it stays below two per cent
GPU_SHARD_ROWS = 65_536
SECONDS_BETWEEN_LINES = 10.0


def translate_missing(
    site: RunContext,
    hop: ResolvedTranslator,
    sentences: Ranges,
    recall: MemoryLookup,
    shard_rows: int | None = None,
    following: int | None = None,
) -> dict[str, JsonValue]:
    """Translate those sentences that the hop's memory lacks, shard by shard.

    Args:
        site: Store and device.
        hop: The translator.
        sentences: sentence_id and text, each sentence once, by ranges of `recall`.
        recall: Of the hop's memory; afterwards it holds a translation of each of them.
        shard_rows: Sentences per shard; by the device unless given.
        following: Hops of about as many sentences that the same stage makes afterwards, where that is known.

    Returns:
        What it took: sentences, target_tokens, seconds.

    Raises:
        TranslationStoppedError: SIGTERM came; what was translated is kept.
    """
    store = site.open_store()
    recall.ask_for(sentences)
    recall.read()
    missing = (recall.missing(number, sentences(number)) for number in range(len(recall)))
    advance = progress_of(f"translation {hop.direction}, sentences", following)
    done, tokens, started = 0, 0, time.monotonic()
    # Not the store's scratch folder: two workers may plan at once, and each must read its own plan.
    with store.workspace() as folder, stop_requested() as stopping:
        shards = plan_shards(missing, shard_rows or _shard_rows(site), folder / "missing.parquet")
        total = sum(shard.rows for shard in shards)
        advance(0, total, "")
        ordered = sorted(shards, key=scattered)
        with closing(run_shards(site, _stage_of(hop), [(hop, shard) for shard in ordered])) as parts:
            for shard, part in zip(ordered, _until(stopping, parts), strict=False):
                done, tokens = done + shard.rows, tokens + _target_tokens(store, part)
                advance(done, total, f"{tokens / (time.monotonic() - started):,.0f} tokens/s")
        if done < total:
            raise _stopped(hop, done, total)
    if shards:
        recall.read()
    seconds = round(time.monotonic() - started, 3)
    return {"hop": hop.direction, "sentences": done, "target_tokens": tokens, "seconds": seconds}


@stage(
    ref=ArtifactRef,
    kind="translations",
    version=TRANSLATION_VERSION,
)
def translate(work: StageContext, hop: ResolvedTranslator, shard: Shard) -> None:
    """Translate one shard of sentences and add it to the translator's memory."""
    limit_threads(work.site)
    translator = _translator(work.site, hop)
    sentences = shard.read()
    started = time.monotonic()
    translations = translator.translate(sentences["text"].to_list(), _logged(f"shard of {hop.direction}"))
    part = sentences.select(
        "sentence_id",
        text=pl.Series([translation.text for translation in translations], dtype=pl.String),
        lang=pl.lit(hop.config.target_lang),
        translator=pl.lit(hop.fingerprint),
        n_tokens=pl.Series([translation.n_tokens for translation in translations], dtype=pl.UInt32),
        score=pl.Series([translation.score for translation in translations], dtype=pl.Float32),
    )
    work.draft.write(part, "translations")
    tokens = sum(translation.n_tokens for translation in translations)
    work.draft.note({"target_tokens": tokens, "seconds": round(time.monotonic() - started, 3)})


def _stage_of(hop: ResolvedTranslator) -> Stage[[ResolvedTranslator, Shard], ArtifactRef]:
    """`translate`, publishing into the memory of this translator."""
    kind = f"{translate.kind}/{hop.fingerprint}"
    return Stage(translate.compute, ref=ArtifactRef, kind=kind, version=translate.version)


def try_translator(site: RunContext, hop: ResolvedTranslator) -> list[str]:
    """Load, convert and smoke-test a translator as a shard does, and give its translations of three plain sentences.

    Raises:
        TranslationError: It cannot be loaded, or what it writes is not language.
    """
    from models.translation.smoke_test import PLAIN_SENTENCES

    sentences = PLAIN_SENTENCES.get(hop.config.source_lang, PLAIN_SENTENCES["en"])
    return [translation.text for translation in _translator(site, hop).translate(sentences)]


class _Crew(NamedTuple):
    """What computes translations here, as `load_translator` takes it."""

    device: str
    cores: int
    replicas: int | None
    threads: int


def _crew(site: RunContext) -> _Crew:
    return _Crew(device_of(site), site.threads or cores(), site.translator_copies, site.translator_threads)


def _translator(site: RunContext, hop: ResolvedTranslator) -> BatchedTranslator:
    backend, found = hop.config.backend, version(hop.config.backend)
    if hop.identity["backend_version"] != found:
        raise TranslatorLoadError(
            f"{hop.direction}: {backend} {found} is installed (expected {hop.identity['backend_version']}). Install "
            "one version on all machines"
        )
    return _loaded(hop.model.folder, hop.config, _conversion(site, hop), _crew(site))


@lru_cache(maxsize=1)  # one model at a time: the next hop's takes its place in the device's memory
def _loaded(folder: Path, config: TranslatorConfig, converted: Path, crew: _Crew) -> BatchedTranslator:
    # Imported here: a run that lacks no translation never pays for transformers.
    from models.translation.loading import load_translator
    from models.translation.smoke_test import smoke_test

    translator = load_translator(
        folder, config, crew.device, converted, crew.cores, replicas=crew.replicas, threads=crew.threads
    )
    for source, text in smoke_test(translator, config):
        logger.info("smoke test %s→%s: %s → %s", config.source_lang, config.target_lang, source, text)
    return translator


def _until(stopping: Callable[[], bool], parts: Iterator[ArtifactRef]) -> Iterator[ArtifactRef]:
    """The parts until somebody asks to stop; asked before each."""
    while not stopping() and (part := next(parts, None)) is not None:
        yield part


def _stopped(hop: ResolvedTranslator, done: int, total: int) -> TranslationStoppedError:
    return TranslationStoppedError(
        f"{hop.direction}: stopped by SIGTERM with {done:,} of {total:,} missing sentences translated; "
        "they are saved, and a rerun translates the others"
    )


def _conversion(site: RunContext, hop: ResolvedTranslator) -> Path:
    """Where the form that ctranslate2 reads lies, or is put when a shard first needs it."""
    cache = site.local_cache or Path.home() / ".cache" / "bsl"
    model = hashlib.sha256(hop.model.identity.encode()).hexdigest()[:16]
    return cache / "ctranslate2" / str(hop.identity["backend_version"]) / model


def _logged(what: str) -> OnProgress:
    """Progress inside a shard, as log lines at a modest rate; the hop keeps the progress artifact."""
    last = time.monotonic()

    def advance(done: int, total: int, detail: str) -> None:
        nonlocal last
        if time.monotonic() - last >= SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            logger.info("%s: %d of %d sentences, %s", what, done, total, detail)

    return advance


def _target_tokens(store: Store, part: ArtifactRef) -> int:
    tokens = store.manifest(part).figures["target_tokens"]
    assert isinstance(tokens, int)
    return tokens


def _shard_rows(site: RunContext) -> int:
    return CPU_SHARD_ROWS if device_of(site) == "cpu" else GPU_SHARD_ROWS


_ROWS: Final = pl.Schema({"sentence_id": pl.UInt64, "text": pl.String, "part": pl.UInt64})
_SLOTS_A_SENTENCE: Final = 8
_MOST_SLOT_BITS: Final = 28  # 256 MiB


class MemoryLookup:
    """The translations of some sentences, as far as there are any.

    Args:
        memory: the translator's.
        scratch: an empty folder.
        bits: as `models.runtime.partitions.Partitions`.
        sentences: how many are asked for, roughly; a wrong number costs time only.
    """

    def __init__(self, memory: TranslationMemory, scratch: Path, bits: int, sentences: int) -> None:
        self._memory = memory
        self._table = Partitions(scratch, _ROWS, bits=bits, tidy=_each_once)
        self._seen: set[str] = set()
        # A memory may be a thousand times the corpus: a row is set aside only if its id falls into a slot that an id
        # of the corpus falls into. Ids are hashes, so their top bits do for a slot; a stranger costs space alone.
        slot_bits = min(_MOST_SLOT_BITS, 10 + math.ceil(math.log2(1 + _SLOTS_A_SENTENCE * sentences / 1024)))
        self._wanted = np.zeros(1 << slot_bits, dtype=np.bool_)
        self._shift = np.uint64(64 - slot_bits)

    def __len__(self) -> int:
        """How many ranges there are."""
        return len(self._table)

    def __getitem__(self, number: int) -> pl.DataFrame:
        """The translations in a range: sentence_id (of the sentence translated), text (its translation)."""
        return self._table[number].drop("part")

    def ask_for(self, sentences: Ranges) -> None:
        """Say which sentences matter, before anything is read."""
        for number in range(len(self)):
            ids = sentences(number).select("sentence_id").collect().to_series().to_numpy()
            self._wanted[ids >> self._shift] = True

    def read(self) -> None:
        """Take what the memory holds, or what has come to it since the last call."""
        for ref, part in self._memory.whole_parts(self._seen):
            self._seen.add(ref.key)
            rows = part.select("sentence_id", "text", part=pl.lit(int(ref.key[:16], 16), dtype=pl.UInt64)).collect()
            is_wanted = self._wanted[rows["sentence_id"].to_numpy() >> self._shift]
            self._table.add(rows.filter(pl.Series(is_wanted)))

    def missing(self, number: int, sentences: pl.LazyFrame) -> pl.DataFrame:
        """Those sentences of a range that have no translation: sentence_id, text."""
        known = self._table[number].lazy()
        return sentences.select("sentence_id", "text").join(known, on="sentence_id", how="anti").collect()


def _each_once(rows: pl.DataFrame) -> pl.DataFrame:
    """Of a sentence's translations the first by the name of its part, so that every reader sees the same."""
    ordered = rows.sort("sentence_id", "part", maintain_order=True)
    return ordered.filter((pl.col("sentence_id") != pl.col("sentence_id").shift(1)).fill_null(value=True))
