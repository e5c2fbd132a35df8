"""Embed the sentences of a file; search a corpus for sentences similar to a query or to each other.

This module needs no Prefect server. Embeddings of a corpus are saved in the store, and a second call reuses them.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import polars as pl

from bsl.models.corpus.corpus import CorpusConfig
from bsl.models.corpus.normalize import NormalizeConfig, has_text, normalize
from bsl.models.encoder.config import EncoderConfig
from bsl.models.runtime.partitions import equal_frames
from bsl.storage.errors import SourceError
from bsl.storage.filesystem.atomic import atomic_write
from bsl.storage.filesystem.os_errors import writing
from bsl.storage.readers.carried import as_text, joined
from bsl.storage.readers.columns import Columns
from bsl.storage.readers.read_report import ReadReport
from bsl.storage.sources.read import check_beside, check_columns, read_columns, read_source
from bsl.storage.sources.sources import SourceSpec, resolve_sources
from bsl.tasks.corpus.config import IngestConfig
from bsl.tasks.corpus.ingest import ingest, locate_sources, summary_of
from bsl.tasks.embedding.embed import embed
from bsl.tasks.embedding.encode import ResumableEncoding
from bsl.tasks.embedding.encoders import ResolvedEncoder, for_role, resolve
from bsl.tasks.stage.device import precision_of
from bsl.tasks.stage.progress import announce

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from bsl.models.runtime.precision import Precision
    from bsl.models.runtime.progress import OnProgress
    from bsl.storage.sources.sources import ResolvedSource
    from bsl.tasks.stage.run_context import RunContext

_ANY_LENGTH: Final = 10**9  # characters


@dataclass(frozen=True)
class Index:
    """Search index: the vectors of a corpus.

    Attributes:
        texts: N unique sentences.
        vectors: Unit vectors, (N, D).
        encode: Function from texts to unit vectors.
        taken: Summary of the ingest: the number of sentences, and of dropped texts.
        beside: Sentence → the named columns of its first record.
    """

    texts: pl.Series
    vectors: NDArray[np.float32]
    encode: Callable[[list[str]], NDArray[np.float32]]
    taken: str = ""
    beside: Mapping[str, dict[str, str]] = field(default_factory=dict)

    def search(self, queries: list[str], k: int) -> list[list[tuple[float, str]]]:
        """Return for each query the k most similar sentences, with their cosines."""
        from bsl.models.serving.nearest_neighbors import nearest

        scores, rows = nearest(self.encode(queries), self.vectors, k)
        return [
            list(zip(similarities.tolist(), self.texts[places.tolist()], strict=True))
            for similarities, places in zip(scores, rows, strict=True)
        ]

    def pairs(self, count: int, above: float) -> list[tuple[float, str, str]]:
        """Return the most similar pairs of sentences, with their cosines: at most `count`, with cosines > `above`."""
        from bsl.models.serving.nearest_neighbors import nearest_pairs

        scores, rows = nearest_pairs(self.vectors, count, above)
        return [
            (score, self.texts[first], self.texts[second])
            for score, (first, second) in zip(scores.tolist(), rows.tolist(), strict=True)
        ]


def index(
    site: RunContext,
    model: str,
    corpus: SourceSpec,
    precision: Precision,
    keep: tuple[str, ...] = (),
    *,
    answers_queries: bool = False,
) -> Index:
    """Embed a corpus, or reuse its embeddings; a killed call resumes.

    Texts may have any length; the encoder truncates them.

    Args:
        site: Run context: store, mirror and device.
        model: Name of the encoder.
        corpus: The file, folder or pattern.
        precision: Precision of the encoder.
        keep: Columns to show beside each sentence.
        answers_queries: Whether the encoder's prompts for queries and documents apply, instead of its default prompt.

    Raises:
        SourceError, AssetError, ArtifactMissingError, EncoderError: The corpus or the encoder is not available.
    """
    from bsl.models.runtime.rows import unit_vectors

    config = IngestConfig(sources=(corpus,), corpus=CorpusConfig(normalize=NormalizeConfig(max_chars=_ANY_LENGTH)))
    sources = resolve_sources(corpus, site.mirror)
    check_beside(sources, keep)
    located = locate_sources(site, config)  # before the slower search for the encoder
    found = resolve(site, EncoderConfig(model=model))
    queries = documents = found.config
    if answers_queries:
        queries, documents = for_role(site, found, "query"), for_role(site, found, "document")
    sentences = ingest(site, located, config)
    embeddings = embed(site, found.encoder, sentences, documents, precision)
    store = site.open_store()
    texts = store.scan(sentences).select("sentence_id", "text")
    table = texts.join(store.scan(embeddings), on="sentence_id", maintain_order="left").collect()
    encode, corpus_encoding = (ResumableEncoding(site, found.encoder, each, precision) for each in (queries, documents))
    if queries == documents:
        prompts = encode.about_prompt("texts")
    else:
        prompts = [*encode.about_prompt("queries"), *corpus_encoding.about_prompt("texts of the corpus")]
    for note in (*prompts, *corpus_encoding.notes([table])):
        announce(note)
    vectors = unit_vectors(table["embedding"].to_numpy())
    beside = _beside(sources, keep)
    return Index(
        table["text"], vectors, lambda texts: unit_vectors(encode(texts)), summary_of(store, sentences), beside
    )


def _beside(sources: Sequence[ResolvedSource], keep: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """Return the kept columns of the first record of each sentence; a text in several columns is one of each."""
    found: dict[str, dict[str, str]] = {}
    for source in sources if keep else ():
        carried = Columns((), carried=keep)
        kept = as_text(joined(list(read_columns(source, carried, ReadReport(source.name)))))
        texts = pl.concat(read_source(source, ReadReport(source.name), max_bad_share=0.0))
        for column in texts.columns:
            for text, row in zip(texts.select(normalize(pl.col(column))).to_series(), kept.to_dicts(), strict=True):
                found.setdefault(text, row)
    return found


def embed_file(
    site: RunContext,
    encoder: EncoderConfig,
    source: SourceSpec,
    target: Path,
    precision: Precision,
    advance: OnProgress,
    keep: tuple[str, ...] = (),
) -> tuple[int, int]:
    """Write `text` and `embedding` of a file's sentences, one row a record, in the file's order.

    A row without text has a null embedding. The files of a folder are grouped by format. The target is a new .parquet
    file; the columns `keep` are copied, as strings from text files and with their types from Parquet and Arrow.
    A killed call leaves its finished parts in a hidden folder next to the target, and the same call resumes from them.

    Returns:
        The number of rows, and of those without text.

    Raises:
        StoreWriteError: The target's folder cannot be written.
        SourceError: The source has several text columns and none is named, has no sentence, or has an unreadable
            record, after which vectors and records would no longer match.
        EncoderError: A text has no vector, or this project cannot compute the encoder.
    """
    sources = resolve_sources(source, site.mirror)
    for one in sources:
        if len(texts := check_columns(one)) > 1:
            raise SourceError(
                f"{one.name}: columns {', '.join(texts)} contain text (expected one). Name it with --column."
            )
    counts = [(frame.height, int(frame.select(has_text(pl.col("text")).sum()).item())) for frame in _frames(sources)]
    rows, total = sum(rows for rows, _ in counts), sum(known for _, known in counts)
    if not total:
        raise SourceError(f"{sources[0].name}: contains no sentence (expected at least one). Check the file.")
    if taken := {"text", "embedding"} & {*keep}:
        raise SourceError(
            f"--keep {taken.pop()}: the new file has this column anyway. Remove it, or rename the column."
        )
    check_beside(sources, keep)
    carried = Columns((), carried=keep)  # read before the vectors, which take longer
    kept = [frame for one in sources if keep for frame in read_columns(one, carried, ReadReport(one.name))]
    found = resolve(site, encoder)
    encoding = ResumableEncoding(site, found.encoder, found.config, precision)
    for note in (*encoding.about_prompt("texts"), *encoding.notes(_frames(sources))):
        announce(note)
    folder = _unfinished(target, sources, found, precision_of(site, precision))
    parts = sum(1 for _ in encoding.parts(equal_frames(_frames(sources), encoding.part), total, folder, advance))
    with atomic_write(target) as path:
        # Further files are from a call on another device, which has smaller parts.
        table = pl.scan_parquet(sorted(folder.glob("*.parquet"))[:parts], glob=False)
        if keep:
            table = pl.concat([joined(kept).lazy(), table], how="horizontal")
        table.sink_parquet(path)
    shutil.rmtree(folder)
    return rows, rows - total


def _unfinished(target: Path, sources: Sequence[ResolvedSource], encoder: ResolvedEncoder, precision: str) -> Path:
    """Return the folder of unfinished work; its name contains a digest of everything that decides the vectors."""
    decisive = [*(one.model_dump(mode="json") for one in sources), encoder.config.model_dump(mode="json"), precision]
    digest = hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:12]
    # Hidden, so that a repeated call on the same folder does not read it as text.
    folder = target.with_name(f".{target.name}.{digest}.parts")
    with writing(target.parent):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def _frames(sources: Sequence[ResolvedSource]) -> Iterator[pl.DataFrame]:
    """Yield frames with column `text`; raise SourceError for an unreadable record."""
    for source in sources:
        report = ReadReport(source.name)
        for frame in read_source(source, report, max_bad_share=1.0, keep_nulls=True):
            if report.rejected:
                raise SourceError(
                    f"{source.name}: {report.bad[0]} (expected text in every record, so that vectors match their "
                    f"rows). {report.remedy()}"
                )
            yield frame.select(pl.first().alias("text"))
