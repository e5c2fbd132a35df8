"""Embed the sentences of a file; search a corpus for sentences similar to a query or to each other.

This module needs no Prefect server. Embeddings of a corpus are saved in the store, and a second call reuses them.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from models.corpus.corpus import CorpusConfig
from models.corpus.normalize import NormalizeConfig
from models.runtime.partitions import equal_frames
from storage.errors import SourceError
from storage.filesystem.atomic import whole
from storage.filesystem.os_errors import writing
from storage.readers.read_report import ReadReport
from storage.sources.read import check_columns, read_source
from storage.sources.sources import SourceSpec, resolve_sources
from tasks.corpus.config import IngestConfig
from tasks.corpus.ingest import ingest, locate_sources, summary_of
from tasks.embedding.embed import embed
from tasks.embedding.encode import ResumableEncoding
from tasks.evaluation.systems import Reading, find_encoder_system

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from models.runtime.precision import Computed
    from models.runtime.progress import OnProgress
    from storage.sources.sources import ResolvedSource
    from tasks.evaluation.systems import NamedEncoder
    from tasks.stage.run_context import RunContext

_ANY_LENGTH: Final = 10**9  # characters


@dataclass(frozen=True)
class Index:
    """Search index: the vectors of a corpus.

    Attributes:
        texts: N unique sentences.
        vectors: Unit vectors, (N, D).
        encode: Function from texts to unit vectors.
        taken: Summary of the ingest: the number of sentences, and of dropped texts.
    """

    texts: pl.Series
    vectors: NDArray[np.float32]
    encode: Callable[[list[str]], NDArray[np.float32]]
    taken: str = ""

    def search(self, queries: list[str], k: int) -> list[list[tuple[float, str]]]:
        """Return for each query the k most similar sentences, with their cosines."""
        from models.serving.nearest_neighbors import nearest

        scores, rows = nearest(self.encode(queries), self.vectors, k)
        return [
            list(zip(similarities.tolist(), self.texts[places.tolist()], strict=True))
            for similarities, places in zip(scores, rows, strict=True)
        ]

    def pairs(self, count: int, above: float) -> list[tuple[float, str, str]]:
        """Return the most similar pairs of sentences, with their cosines: at most `count`, with cosines > `above`."""
        from models.serving.nearest_neighbors import nearest_pairs

        scores, rows = nearest_pairs(self.vectors, count, above)
        return [
            (score, self.texts[first], self.texts[second])
            for score, (first, second) in zip(scores.tolist(), rows.tolist(), strict=True)
        ]


def index(site: RunContext, model: str, corpus: SourceSpec, precision: Computed) -> Index:
    """Embed a corpus, or reuse its embeddings; a killed call resumes.

    Texts may have any length; the encoder truncates them.

    Raises:
        SourceError, AssetError, ArtifactMissingError, EncoderError: The corpus or the encoder is not available.
    """
    from models.serving.nearest_neighbors import unit

    config = IngestConfig(sources=(corpus,), corpus=CorpusConfig(normalize=NormalizeConfig(max_chars=_ANY_LENGTH)))
    located = locate_sources(site, config)  # before the slower search for the encoder
    candidate = find_encoder_system(site, model, Reading())
    sentences = ingest(site, located, config)
    embeddings = embed(site, candidate.encoder, sentences, candidate.config, precision)
    store = site.open_store()
    table = store.scan(sentences).select("sentence_id", "text").join(store.scan(embeddings), on="sentence_id").collect()
    encode = ResumableEncoding(site, candidate.encoder, candidate.config, precision)
    vectors = unit(table["embedding"].to_numpy())
    return Index(table["text"], vectors, lambda texts: unit(encode(texts)), summary_of(store, sentences))


def embed_file(
    site: RunContext, model: str, source: SourceSpec, target: Path, precision: Computed, advance: OnProgress
) -> int:
    """Write `text` and `embedding` of a file's sentences, one row for each record, in the file's order.

    The files of a folder are grouped by format. A killed call leaves its finished parts in a hidden folder next to the
    target, and the same call resumes from them.

    Args:
        site: Run context: store, mirror and device.
        model: Name of the encoder.
        source: The file, folder or pattern.
        target: A new file, whose name ends in .parquet.
        precision: Precision of the encoder.
        advance: Called as (sentences done, total, detail).

    Returns:
        Number of sentences.

    Raises:
        StoreWriteError: The target's folder cannot be written.
        SourceError: The source has several text columns and none is named, has no sentence, or has an unreadable
            record, after which vectors and records would no longer match.
        EncoderError: A text has no vector, or this project cannot compute the encoder.
    """
    found = resolve_sources(source, site.mirror)
    for one in found:
        if len(texts := check_columns(one)) > 1:
            raise SourceError(
                f"{one.name}: columns {', '.join(texts)} contain text (expected one). Name it with --column."
            )
    total = sum(map(len, _frames(found)))
    if not total:
        raise SourceError(f"{found[0].name}: contains no sentence (expected at least one). Check the file.")
    candidate = find_encoder_system(site, model, Reading())
    encoding = ResumableEncoding(site, candidate.encoder, candidate.config, precision)
    folder = _unfinished(target, found, candidate, precision)
    parts = sum(1 for _ in encoding.parts(equal_frames(_frames(found), encoding.part), total, folder, advance))
    with whole(target) as path:
        # Further files are from a call on another device, which has smaller parts.
        pl.scan_parquet(sorted(folder.glob("*.parquet"))[:parts], glob=False).sink_parquet(path)
    shutil.rmtree(folder)
    return total


def _unfinished(target: Path, sources: Sequence[ResolvedSource], candidate: NamedEncoder, precision: Computed) -> Path:
    """Return the folder of unfinished work; its name contains a digest of everything that decides the vectors."""
    decisive = [*(one.model_dump(mode="json") for one in sources), candidate.config.model_dump(mode="json"), precision]
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
        for frame in read_source(source, report, max_bad_share=1.0):
            if report.rejected:
                raise SourceError(
                    f"{source.name}: {report.bad[0]} (expected text in every record, so that vectors match their "
                    "rows). Correct the record."
                )
            yield frame.select(pl.first().alias("text"))
