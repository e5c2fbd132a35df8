"""Translate the sentences that a translator's memory lacks, in shards; each shard is a cached task.

Design choices
- A shard is a slice of the missing sentences sorted by (length, sentence_id), with a fixed number of rows. Finished
  shards remove whole slices, so a resumed run cuts the rest like the first run, and ends with the same bytes.
- A shard's key consists of its translator and its sentences. Two workers that translate the same shard publish the same
  artifact; the second finds it and continues.
- Shards run in scattered order, different in each process. The rate of the first shards thus predicts the time left,
  though lengths differ, and two workers rarely translate the same shard.
- The translator is loaded and smoke-tested for the first shard only; a run without missing translations loads none.
- SIGTERM stops between two shards: a started shard is published, and the next run continues after it. On a cluster, it
  stops at once, and the workers publish the shards that they started.
- A memory is ordered by translation: by shard, and within a shard by length. To join it with sentences ordered by id,
  `MemoryLookup` reads it once, part by part, and partitions the needed rows into ranges of ids.
"""

from __future__ import annotations

import hashlib
import logging
import math
import time
from collections import Counter
from contextlib import closing, nullcontext
from functools import lru_cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bsl.models.errors import TranslationError, TranslationStoppedError
from bsl.models.runtime.partitions import Partitions
from bsl.models.translation.config import TRANSLATION_VERSION, Resources
from bsl.models.translation.loading import load_translator
from bsl.models.translation.smoke_test import PLAIN_SENTENCES, smoke_test
from bsl.storage.artifacts.refs import ArtifactRef
from bsl.storage.filesystem.caches import copy_folder, filling
from bsl.tasks.figures import ShardFigures
from bsl.tasks.stage.cached import StageContext, stage
from bsl.tasks.stage.cluster import run_shards
from bsl.tasks.stage.device import cores, device_of
from bsl.tasks.stage.shards import Shard, plan_shards, scattered
from bsl.tasks.stage.sigterm import stop_requested
from bsl.tasks.stage.ui import progress_of
from bsl.tasks.translation.translator import ResolvedTranslator

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import JsonValue

    from bsl.models.runtime.partitions import Ranges
    from bsl.models.runtime.progress import OnProgress
    from bsl.models.translation.batching import BatchedTranslator
    from bsl.models.translation.config import TranslatorConfig
    from bsl.storage.artifacts.store import Store
    from bsl.tasks.stage.run_context import RunContext


logger = logging.getLogger(__name__)

CPU_SHARD_ROWS = 2048  # at least ten seconds, so that Prefect's overhead stays below two per cent
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
    """Translate the sentences that the hop's memory lacks, shard by shard; return the cost.

    Sentences are sentence_id and text, each sentence once, by ranges of `recall`, which afterwards has a translation of
    each. `following` is the number of later hops of this stage with about as many sentences, if known. The cost is the
    numbers of translated sentences, of those that were too long or whose translation was cut (`ShardFigures`) and of
    tokens, and the seconds.

    Raises:
        TranslationStoppedError: SIGTERM was received; finished translations are saved.
    """
    store = site.open_store()
    recall.ask_for(sentences)
    recall.read()
    missing = (recall.missing(number, sentences(number)) for number in range(len(recall)))
    advance = progress_of(f"translation {hop.direction}, sentences", following)
    done, tokens, started = 0, 0, time.monotonic()
    lost = Counter({"long_sentences": 0, "cut_translations": 0})
    # The shards of a cluster need not be awaited, and without workers they never end: there SIGTERM ends the wait.
    deferred = stop_requested() if site.cluster is None else nullcontext(lambda: False)
    # Not the store's scratch folder, which two workers share: each must read its own plan.
    with store.workspace() as folder, deferred as stopping:
        rows = CPU_SHARD_ROWS if device_of(site) == "cpu" else GPU_SHARD_ROWS
        shards = plan_shards(missing, shard_rows or rows, folder)
        total = sum(shard.rows for shard in shards)
        advance(0, total, "")
        ordered = sorted(shards, key=scattered)
        with closing(run_shards(site, translate, [(hop, shard) for shard in ordered])) as parts:
            for shard in ordered:
                if stopping():
                    raise TranslationStoppedError(
                        f"{hop.direction}: stopped by SIGTERM with {done:,} of {total:,} missing sentences translated. "
                        "They are saved; run again to translate the others."
                    )
                figures = store.manifest(next(parts)).figures_as(ShardFigures)
                done, tokens = done + shard.rows, tokens + figures.target_tokens
                lost.update(figures.model_dump(include={*lost}))
                advance(done, total, f"{tokens / (time.monotonic() - started):,.0f} tokens/s")
    if shards:
        recall.read()
    seconds = round(time.monotonic() - started, 3)
    return {"hop": hop.direction, "sentences": done, **lost, "target_tokens": tokens, "seconds": seconds}


@stage(
    ref=ArtifactRef,
    kind=lambda arguments: f"translations/{arguments['hop'].fingerprint}",  # the translator's memory
    version=TRANSLATION_VERSION,
    uses_torch=True,
)
def translate(context: StageContext, hop: ResolvedTranslator, shard: Shard) -> None:
    """Translate one shard of sentences and add it to the translator's memory."""
    translator = _translator(context.site, hop)
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
    context.draft.write(part, "translations")
    tokens = sum(translation.n_tokens for translation in translations)
    lost = Counter(translation.lost for translation in translations)
    figures = ShardFigures(
        target_tokens=tokens,
        seconds=round(time.monotonic() - started, 3),
        long_sentences=lost["source"],
        cut_translations=lost["translation"],
    )
    context.draft.note(figures)


def try_translator(site: RunContext, hop: ResolvedTranslator) -> list[str]:
    """Load, convert and smoke-test a translator as a shard does; return its translations of plain sentences.

    Raises:
        TranslationError: The translator cannot be loaded, or fails the smoke test.
    """
    sentences = PLAIN_SENTENCES.get(hop.config.source_lang, PLAIN_SENTENCES["en"])
    return [translation.text for translation in _translator(site, hop).translate(sentences)]


def _translator(site: RunContext, hop: ResolvedTranslator) -> BatchedTranslator:
    backend, found = hop.config.backend, version(hop.config.backend)
    if hop.identity["backend_version"] != found:
        raise TranslationError(
            f"{hop.direction}: {backend} {found} is installed (expected {hop.identity['backend_version']}). Install "
            "one version on all machines."
        )
    resources = Resources(device_of(site), site.threads or cores(), site.translator_copies, site.translator_threads)
    # The model is converted for CTranslate2 once, by the first shard.
    digest = hashlib.sha256(hop.model.identity.encode()).hexdigest()[:16]
    converted = copy_folder(site.local_cache, "ctranslate2", found, digest)
    folder, is_needed = hop.model.folder, backend == "ctranslate2" and not converted.is_dir()
    with filling(converted) if is_needed else nullcontext():
        return _loaded(folder, hop.config, resources, converted)


@lru_cache(maxsize=1)  # one model at a time: the next hop's replaces it in the device's memory
def _loaded(folder: Path, config: TranslatorConfig, resources: Resources, converted: Path) -> BatchedTranslator:
    translator = load_translator(folder, config, resources, converted)
    for source, text in smoke_test(translator, config):
        logger.info("smoke test %s→%s: %s → %s", config.source_lang, config.target_lang, source, text)
    return translator


def _logged(what: str) -> OnProgress:
    """Return a progress callback that logs at most every `SECONDS_BETWEEN_LINES`, for use inside a shard."""
    last = time.monotonic()

    def advance(done: int, total: int, detail: str) -> None:
        nonlocal last
        if time.monotonic() - last >= SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            logger.info("%s: %d of %d sentences, %s", what, done, total, detail)

    return advance


_ROWS: Final = pl.Schema({"sentence_id": pl.UInt64, "text": pl.String, "part": pl.UInt64})
_SLOTS_A_SENTENCE: Final = 8
_MOST_SLOT_BITS: Final = 28  # 256 MiB


class MemoryLookup:
    """Existing translations of some sentences in the memory of a translator, named by its fingerprint.

    They are looked up by ranges of ids, of which `bits` is the logarithm of the number; `scratch` is an empty folder.
    The number of sentences may be approximate: a wrong one only costs time.
    """

    def __init__(self, store: Store, fingerprint: str, scratch: Path, bits: int, sentences: int) -> None:
        self._store, self._fingerprint = store, fingerprint
        self._table = Partitions(scratch, _ROWS, bits=bits, tidy=_first_translations)
        self._seen: set[str] = set()
        # A memory may be a thousand times larger than the corpus, so rows are filtered by a table of slots, as in a
        # Bloom filter: a row stays if its id shares a slot with an id of the corpus. Ids are hashes, so their top bits
        # serve as the slot. A false positive costs only space.
        slot_bits = min(_MOST_SLOT_BITS, 10 + math.ceil(math.log2(1 + _SLOTS_A_SENTENCE * sentences / 1024)))
        self._wanted = np.zeros(1 << slot_bits, dtype=np.bool_)
        self._shift = np.uint64(64 - slot_bits)

    def __len__(self) -> int:
        """Return the number of ranges."""
        return len(self._table)

    def __getitem__(self, number: int) -> pl.DataFrame:
        """Return the translations of a range: sentence_id (of the source sentence), text (its translation)."""
        return self._table[number].drop("part")

    def ask_for(self, sentences: Ranges) -> None:
        """Register the sentences to look up; call it before `read`."""
        for number in range(len(self)):
            ids = sentences(number).select("sentence_id").collect().to_series().to_numpy()
            self._wanted[ids >> self._shift] = True

    def read(self) -> None:
        """Read the memory, or the parts added since the last call."""
        for ref, part in self._store.intact(f"translations/{self._fingerprint}", self._seen):
            self._seen.add(ref.key)
            rows = part.select("sentence_id", "text", part=pl.lit(int(ref.key[:16], 16), dtype=pl.UInt64)).collect()
            is_wanted = self._wanted[rows["sentence_id"].to_numpy() >> self._shift]
            self._table.add(rows.filter(pl.Series(is_wanted)))

    def missing(self, number: int, sentences: pl.LazyFrame) -> pl.DataFrame:
        """Return the sentences of a range that have no translation: sentence_id, text."""
        known = self._table[number].lazy()
        return sentences.select("sentence_id", "text").join(known, on="sentence_id", how="anti").collect()


def _first_translations(rows: pl.DataFrame) -> pl.DataFrame:
    """Select one translation per sentence, the first by part key, so that every reader selects the same."""
    ordered = rows.sort("sentence_id", "part", maintain_order=True)
    return ordered.filter((pl.col("sentence_id") != pl.col("sentence_id").shift(1)).fill_null(value=True))
