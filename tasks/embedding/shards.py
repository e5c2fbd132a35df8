"""A large corpus to vectors: cut into ranges of its sentences, each a cached piece of work.

Design choices
- A range is a fixed number of sentences in the order of their ids, on whatever machine, so bytes do not
  depend on the machine. Vectors of it that are held already are taken over; the rest is its shard.
- A shard is an artifact, which a killed run and other corpora find again. `gc` takes it as any other.
- Memory holds a range's sentences and vectors.
"""

from __future__ import annotations

from contextlib import closing
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow.parquet as pq

from models.encoder.config import EncoderConfig
from models.errors import EncoderError, NoEmbeddingError
from models.runtime.precision import Computed
from storage.artifacts.refs import ArtifactRef, CheckpointRef, EmbeddingsRef
from storage.errors import StorageError
from storage.sources.model_sources import ResolvedModel
from tasks.embedding.encode import ResumableEncoding
from tasks.stage.cached import StageContext, stage
from tasks.stage.shards import PLAN, Shard, digest_of, run_shards
from tasks.stage.ui import progress_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from models.runtime.progress import OnProgress
    from storage.artifacts.manifest import Provenance
    from storage.artifacts.refs import CorpusRef
    from storage.artifacts.store import Store
    from tasks.stage.run_context import RunContext


EMBED_VERSION: Final = 6
"""Raise it in the commit that changes a vector. Both stages have it, so that each takes over what the other made."""
SHARD_ROWS: Final = 65_536  # minutes on a CPU, seconds on a GPU; 200 MB of 768 dimensions
WHAT: Final = "embedding, sentences"


def is_large(sentences: int) -> bool:
    """Whether a corpus of so many sentences is embedded in shards."""
    return sentences > SHARD_ROWS


class CorpusVectors:
    """The vectors of a large corpus, range by range.

    Args:
        work: of the stage that wants them.
        held: what need not be embedded.
        encoder, corpus, config, precision: as of that stage.

    Attributes:
        rows: sentences.
        embedded: those that were not held; known once the first frame has come.
        width: D; known likewise.
    """

    def __init__(
        self,
        work: StageContext,
        held: ReusableVectors,
        encoder: CheckpointRef | ResolvedModel,
        corpus: CorpusRef,
        config: EncoderConfig,
        precision: Computed,
    ) -> None:
        self.embedded = self.width = 0
        self._work, self._held = work, held
        self._how = encoder, config, precision
        self._sentences = work.store.scan(corpus).select("sentence_id", "text")
        self.rows = work.store.manifest(corpus).rows

    def frames(self) -> Iterator[pl.DataFrame]:
        """`sentence_id` and `embedding`, a range after the other, in the order of ids.

        Raises:
            EncoderError: a sentence has no embedding.
        """
        store, (encoder, config, precision) = self._work.store, self._how
        advance = progress_of(WHAT)
        # Not the store's scratch folder: two runs may plan at once, and each must read its own plan.
        with store.workspace() as folder:
            shards = self._planned(folder / "missing.parquet")
            self.embedded = total = sum(shard.rows for shard in shards)
            if total:
                advance(0, total, "")  # so that shards count as parts, which need no line each
            lacking = [shard.model_copy(update={"total": total}) for shard in shards if shard.rows]
            calls = [(encoder, shard, config, precision) for shard in lacking]
            with closing(run_shards(self._work.site, embed_shard, calls)) as made:
                for number, shard in enumerate(shards):
                    parts = [self._held.of(self._range(number, "sentence_id"))]
                    if shard.rows:
                        parts.append(store.scan(next(made)).collect())
                        advance(shard.start + shard.rows, total, "")
                    table = pl.concat(part for part in parts if part.height).sort("sentence_id")
                    self.width = table.schema["embedding"].shape[0]  # type: ignore[attr-defined]  # an Array
                    yield table
        _encoding.cache_clear()  # what comes after may want the device's memory

    def _range(self, number: int, *columns: str) -> pl.DataFrame:
        return self._sentences.select(columns).slice(number * SHARD_ROWS, SHARD_ROWS).collect()

    def _planned(self, plan: Path) -> list[Shard]:
        """What each range lacks, in a file with a group of rows for each; a range that lacks nothing has no rows."""
        shards: list[Shard] = []
        start = 0
        with pq.ParquetWriter(plan, PLAN, compression="zstd") as writer:
            for number in range(-(-self.rows // SHARD_ROWS)):
                rows = self._range(number, "sentence_id", "text")
                known = self._held.of(rows).select("sentence_id")
                missing = rows.join(known, on="sentence_id", how="anti", maintain_order="left")
                if missing.height:
                    writer.write_table(missing.to_arrow().cast(PLAN))
                shards.append(Shard(digest=digest_of(missing), plan=plan, start=start, rows=missing.height))
                start += missing.height
        return shards


@stage(ref=ArtifactRef, kind="embeddings/shards", version=EMBED_VERSION)
def embed_shard(
    work: StageContext, encoder: CheckpointRef | ResolvedModel, shard: Shard, config: EncoderConfig, precision: Computed
) -> None:
    """Embed some sentences of a corpus.

    Raises:
        EncoderError: one of them has no embedding; the message has its text.
    """
    sentences, count = shard.read(), progress_of(WHAT)

    def advance(done: int, _own: int, detail: str) -> None:
        count(shard.start + done, shard.total or shard.rows, detail)

    encoding = _encoding(work.site, encoder, _content(work.store, encoder), config, precision)
    try:
        table = pl.concat(encoded(work, encoding, sentences, advance))
    except NoEmbeddingError as error:
        text = sentences["text"][error.number]
        raise EncoderError(f"a sentence of the corpus: {text[:60]!r} {error.reason}") from error
    work.draft.write(table)
    width = table.schema["embedding"].shape[0]  # type: ignore[attr-defined]  # an Array
    work.draft.note({"sentences": table.height, "dimensions": width})


def encoded(
    work: StageContext, encoding: ResumableEncoding, sentences: pl.DataFrame, advance: OnProgress
) -> list[pl.DataFrame]:
    """`sentence_id` and `embedding` of sentences, in parts by their ids: each has all lengths, so all take alike.

    Raises:
        NoEmbeddingError: one has none.
    """
    if sentences.is_empty():
        return []  # and no torch is imported
    rows = encoding.part
    kept = work.store.scratch(work.ref) if sentences.height > rows else None
    parts = encoding.parts(sentences.iter_slices(rows), sentences.height, kept, advance)
    return [part.select("sentence_id", "embedding") for part in parts]


def _content(store: Store, encoder: CheckpointRef | ResolvedModel) -> str:
    return store.manifest(encoder).digest if isinstance(encoder, CheckpointRef) else encoder.identity


@lru_cache(maxsize=1)  # from shard to shard
def _encoding(
    site: RunContext, encoder: CheckpointRef | ResolvedModel, _digest: str, config: EncoderConfig, precision: Computed
) -> ResumableEncoding:
    return ResumableEncoding(site, encoder, config, precision)


STAGES: Final = ("embed", "embed_shard")
_NAMES: Final = ("model", "revision")  # of an encoder's configuration: what it is called, not what it computes
_NONE: Final = pl.DataFrame(schema={"sentence_id": pl.UInt64, "embedding": pl.Array(pl.Float32, 1)})


class ReusableVectors:
    """What `STAGES` made with one encoder in one precision.

    Args:
        store: is listed once; what is published later is not seen.
        mine: of the artifact that takes them over.
    """

    def __init__(self, store: Store, mine: Provenance) -> None:
        self._tables = list(_tables(store, mine))

    def of(self, sentences: pl.DataFrame) -> pl.DataFrame:
        """`sentence_id` and `embedding` of those of the sentences that have one, each once, in no order."""
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


def _tables(store: Store, mine: Provenance) -> Iterator[tuple[pl.LazyFrame, int, int]]:
    """Each table with its lowest and highest id."""
    for ref in store.refs(EmbeddingsRef.model_fields["kind"].default):
        try:
            made = store.manifest(ref).provenance
            if made.stage in STAGES and _space(made) == _space(mine):
                table = store.scan(ref)
                first, last = table.select(pl.min("sentence_id"), pl.max("sentence_id").alias("last")).collect().row(0)
                if first is not None:
                    yield table, first, last
        except StorageError:
            continue  # a damaged one is as good as none: its sentences are embedded again


def _space(made: Provenance) -> object:
    """All that decides a sentence's vector: not the model's name, for its content stands in `encoder`."""
    config = made.config.get("config")
    shape = {name: value for name, value in config.items() if name not in _NAMES} if isinstance(config, dict) else None
    return (
        made.stage_version,
        made.inputs.get("encoder"),
        made.config.get("encoder"),
        made.config.get("precision"),
        shape,
    )
