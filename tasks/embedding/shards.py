"""Embed a large corpus in shards, each a cached stage; reuse vectors of earlier runs.

Design choices
- A range is a fixed number of sentences in the order of their ids, equal on every machine, so that the bytes do not
  depend on the machine. Existing vectors of a range are reused; its other sentences form its shard.
- A shard is an artifact, which a resumed run and other corpora reuse. `gc` treats it like any other.
- Memory use is bounded by the sentences and vectors of one range.
"""

from __future__ import annotations

from contextlib import closing
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import polars as pl

from bsl.models.encoder.config import EncoderConfig
from bsl.models.errors import EncoderError, NoEmbeddingError
from bsl.models.runtime.precision import Precision
from bsl.storage.artifacts.refs import ArtifactRef, CheckpointRef, EmbeddingsRef
from bsl.storage.errors import StorageError
from bsl.storage.sources.model_sources import ResolvedModel
from bsl.tasks.embedding.encode import ResumableEncoding
from bsl.tasks.stage.cached import StageContext, stage
from bsl.tasks.stage.cluster import run_shards
from bsl.tasks.stage.shards import Shard, write_shards
from bsl.tasks.stage.ui import progress_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bsl.models.runtime.progress import OnProgress
    from bsl.storage.artifacts.manifest import Provenance
    from bsl.storage.artifacts.refs import CorpusRef
    from bsl.storage.artifacts.store import Store
    from bsl.tasks.stage.run_context import RunContext


EMBED_VERSION: Final = 6
"""Raise it in a commit that changes vectors. Both stages share it, so that each reuses vectors of the other."""
SHARD_ROWS: Final = 65_536  # minutes on a CPU, seconds on a GPU; 200 MB with 768 dimensions
WHAT: Final = "embedding, sentences"


def is_large(sentences: int) -> bool:
    """Return whether a corpus with that number of sentences is embedded in shards."""
    return sentences > SHARD_ROWS


def embed_ranges(
    context: StageContext,
    reusable: ReusableVectors,
    encoder: CheckpointRef | ResolvedModel,
    corpus: CorpusRef,
    config: EncoderConfig,
    precision: Precision,
) -> tuple[int, int]:
    """Write the vectors of a large corpus, one file per range, in the order of ids.

    Returns:
        Number of newly embedded sentences, and width D of the vectors.

    Raises:
        EncoderError: A sentence has no embedding.
    """
    store, sentences = context.store, context.store.scan(corpus).select("sentence_id", "text")
    advance, width = progress_of(WHAT), 0
    # Not the store's scratch folder, which two runs share: each must read its own plan.
    with store.workspace() as folder:
        missing = _missing(sentences, store.manifest(corpus).rows, reusable)
        shards = write_shards(missing, folder)
        total = sum(shard.rows for shard in shards)
        if total:
            advance(0, total, "")  # with a count, the terminal prints no line for each shard
        to_embed = [shard.model_copy(update={"total": total}) for shard in shards if shard.rows]
        calls = [(encoder, shard, config, precision) for shard in to_embed]
        with closing(run_shards(context.site, embed_shard, calls)) as refs:
            for number, shard in enumerate(shards):
                parts = [reusable.of(_range(sentences, number, "sentence_id"))]
                if shard.rows:
                    parts.append(store.scan(next(refs)).collect())
                    advance(shard.start + shard.rows, total, "")
                table = pl.concat(part for part in parts if part.height).sort("sentence_id")
                width = table.schema["embedding"].shape[0]  # type: ignore[attr-defined]  # an Array
                context.draft.write(table)  # one file for each range, as one file would need all rows in memory
    _encoding.cache_clear()  # frees the device's memory
    return total, width


def _range(sentences: pl.LazyFrame, number: int, *columns: str) -> pl.DataFrame:
    return sentences.select(columns).slice(number * SHARD_ROWS, SHARD_ROWS).collect()


def _missing(sentences: pl.LazyFrame, count: int, reusable: ReusableVectors) -> Iterator[pl.DataFrame]:
    """Yield the sentences of each range that have no vector; none of a complete range."""
    for number in range(-(-count // SHARD_ROWS)):
        rows = _range(sentences, number, "sentence_id", "text")
        known = reusable.of(rows).select("sentence_id")
        yield rows.join(known, on="sentence_id", how="anti", maintain_order="left")


@stage(ref=ArtifactRef, kind="embeddings/shards", version=EMBED_VERSION)
def embed_shard(
    context: StageContext,
    encoder: CheckpointRef | ResolvedModel,
    shard: Shard,
    config: EncoderConfig,
    precision: Precision,
) -> None:
    """Embed a shard of a corpus.

    Raises:
        EncoderError: A sentence has no embedding; the message has its text.
    """
    sentences, count = shard.read(), progress_of(WHAT)

    def advance(done: int, _own: int, detail: str) -> None:
        count(shard.start + done, shard.total or shard.rows, detail)

    content = context.store.manifest(encoder).digest if isinstance(encoder, CheckpointRef) else encoder.identity
    encoding = _encoding(context.site, encoder, content, config, precision)
    try:
        table = pl.concat(encoded(context, encoding, sentences, advance))
    except NoEmbeddingError as error:
        text = sentences["text"][error.number]
        raise EncoderError(f"corpus sentence: {text[:60]!r} {error.reason}") from error
    context.draft.write(table)
    width = table.schema["embedding"].shape[0]  # type: ignore[attr-defined]  # an Array
    context.draft.note({"sentences": table.height, "dimensions": width})


def encoded(
    context: StageContext, encoding: ResumableEncoding, sentences: pl.DataFrame, advance: OnProgress
) -> list[pl.DataFrame]:
    """Return `sentence_id` and `embedding` of sentences, in parts by id, which mix all lengths and take equally long.

    Raises:
        NoEmbeddingError: A sentence has no embedding.
    """
    if sentences.is_empty():
        return []  # without importing torch
    rows = encoding.part
    folder = context.store.scratch(context.ref) if sentences.height > rows else None
    parts = encoding.parts(sentences.iter_slices(rows), sentences.height, folder, advance)
    return [part.select("sentence_id", "embedding") for part in parts]


@lru_cache(maxsize=1)  # keeps the encoder loaded between shards
def _encoding(
    site: RunContext, encoder: CheckpointRef | ResolvedModel, _digest: str, config: EncoderConfig, precision: Precision
) -> ResumableEncoding:
    return ResumableEncoding(site, encoder, config, precision)


STAGES: Final = ("embed", "embed_shard")
_NAMES: Final = ("model", "revision")  # fields of an encoder's configuration that name it and do not change its vectors
_NONE: Final = pl.DataFrame(schema={"sentence_id": pl.UInt64, "embedding": pl.Array(pl.Float32, 1)})


class ReusableVectors:
    """Existing vectors by `STAGES` with the same encoder and precision.

    Args:
        store: The store; listed once, so later artifacts are not found.
        requested: Provenance of the artifact that reuses the vectors.
    """

    def __init__(self, store: Store, requested: Provenance) -> None:
        self._tables = list(_tables(store, requested))

    def of(self, sentences: pl.DataFrame) -> pl.DataFrame:
        """Return `sentence_id` and `embedding` of the sentences with an existing vector, each once, in any order."""
        ids = sentences.select("sentence_id")
        if ids.is_empty():
            return _NONE
        low, high = ids["sentence_id"].min(), ids["sentence_id"].max()
        found = [
            table.filter(pl.col("sentence_id").is_between(low, high)).join(ids.lazy(), on="sentence_id", how="semi")
            for table, first, last in self._tables
            if first <= high and low <= last  # type: ignore[operator]  # numbers, of a column of ids
        ]
        if not found:
            return _NONE
        return pl.concat(found).unique("sentence_id", keep="first", maintain_order=True).collect()


def _tables(store: Store, requested: Provenance) -> Iterator[tuple[pl.LazyFrame, int, int]]:
    """Yield each reusable table with its lowest and highest id."""
    for ref in store.refs(EmbeddingsRef.model_fields["kind"].default):
        try:
            provenance = store.manifest(ref).provenance
            if provenance.stage in STAGES and _space(provenance) == _space(requested):
                table = store.scan(ref)
                first, last = table.select(pl.min("sentence_id"), pl.max("sentence_id").alias("last")).collect().row(0)
                if first is not None:
                    yield table, first, last
        except StorageError:
            continue  # a damaged artifact is skipped, and its sentences are embedded again


def _space(provenance: Provenance) -> object:
    """Return everything that decides a sentence's vector; not the model's name, as `encoder` has its content."""
    config = provenance.config.get("config")
    shape = {name: value for name, value in config.items() if name not in _NAMES} if isinstance(config, dict) else None
    return (
        provenance.stage_version,
        provenance.inputs.get("encoder"),
        provenance.config.get("encoder"),
        provenance.config.get("precision"),
        shape,
    )
