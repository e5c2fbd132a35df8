"""An encoder in use: a file's sentences as vectors, the sentences of a corpus that are like another, or each other.

Nothing here needs Prefect's server; what is made lies in the store all the same, and a second call finds it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import polars as pl

from storage.errors import SourceError, StoreWriteError
from storage.files import whole
from storage.readers.report import ReadReport
from storage.reading import check_columns, read_source
from storage.sources import SourceSpec, resolve_source
from tasks.embed import embed
from tasks.evaluation.candidates import find_candidate
from tasks.evaluation.settings import Reading
from tasks.ingest import ingest
from tasks.ingest_config import IngestConfig
from tasks.pretrained import encoder_folder
from tasks.stage.machine import device_of, settle_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray
    from transformers import PreTrainedTokenizerBase

    from models.encoder.network import Encoder
    from models.evaluation.config import Precision
    from models.progress import OnProgress
    from storage.sources import ResolvedSource
    from tasks.evaluation.systems import Candidate
    from tasks.site import Site

CHUNK: Final = 20_000  # sentences between two places at which a killed call goes on


@dataclass(frozen=True)
class Index:
    """A corpus as an encoder sees it.

    Attributes:
        texts: N sentences, each once.
        vectors: (N, D), of length 1.
        encode: The vectors of other texts, of length 1.
    """

    texts: pl.Series
    vectors: NDArray[np.float32]
    encode: Callable[[list[str]], NDArray[np.float32]]

    def search(self, queries: list[str], k: int) -> list[list[tuple[float, str]]]:
        """For each query the k sentences most like it, with their cosines."""
        from models.nearest import nearest

        scores, rows = nearest(self.encode(queries), self.vectors, k)
        return [
            list(zip(own.tolist(), self.texts[places.tolist()], strict=True))
            for own, places in zip(scores, rows, strict=True)
        ]

    def pairs(self, count: int, above: float) -> list[tuple[float, str, str]]:
        """The sentences that are most like each other, with their cosines."""
        from models.nearest import nearest_pairs

        scores, rows = nearest_pairs(self.vectors, count, above)
        return [
            (score, self.texts[first], self.texts[second])
            for score, (first, second) in zip(scores.tolist(), rows.tolist(), strict=True)
        ]


def index(site: Site, model: str, corpus: SourceSpec, precision: Precision) -> Index:
    """Embed a corpus, or find it embedded.

    Raises:
        SourceError, AssetError, ArtifactMissingError, EncoderError: the corpus or the encoder cannot be had.
    """
    from models.nearest import unit

    candidate = find_candidate(site, model, Reading())
    sources = (resolve_source(corpus, site.mirror, site.local_cache),)
    config = IngestConfig(sources=(corpus,))
    sentences = ingest.have(site, sources, config)
    embeddings = embed.have(site, candidate.encoder, sentences, candidate.config, precision)
    store = site.open_store()
    table = store.scan(sentences).select("sentence_id", "text").join(store.scan(embeddings), on="sentence_id").collect()
    encode = _Encoding(site, candidate, precision)
    return Index(table["text"], unit(table["embedding"].to_numpy()), lambda texts: unit(encode(texts)))


def embed_file(
    site: Site, model: str, source: SourceSpec, target: Path, precision: Precision, advance: OnProgress
) -> int:
    """Write `text` and `embedding` of a file's sentences, in its order and each as often as it stands there.

    A killed call leaves what it made in a folder beside the target, and the same call goes on from there.

    Returns:
        Sentences.

    Raises:
        StoreWriteError: the target is there.
        SourceError: the source has several columns of text and none is named, has no sentence, or a record that cannot
            be read: each vector after it would stand beside another's row.
    """
    if target.exists():
        raise StoreWriteError(f"{target}: there already; expected a new file: name another, or delete it")
    found = resolve_source(source, site.mirror, site.local_cache)
    if len(texts := check_columns(found)) > 1:
        raise SourceError(f"{found.name}: columns {', '.join(texts)} hold text, expected one; name it with --column")
    candidate = find_candidate(site, model, Reading())
    parts = _parts(target, found, candidate, precision)
    encode, done = _Encoding(site, candidate, precision), 0
    for number, frame in enumerate(_chunks(found)):
        part = parts / f"{number:06}.parquet"
        if not part.exists():
            table = frame.with_columns(embedding=pl.Series(encode(frame["text"].to_list())))
            with whole(part) as path:
                table.write_parquet(path)
        done += len(frame)
        advance(done, done, "")
    if not done:
        raise SourceError(f"{found.name}: no sentence, expected one at least; look at the file")
    with whole(target) as path:
        pl.scan_parquet(sorted(parts.glob("*.parquet")), glob=False).sink_parquet(path)
    shutil.rmtree(parts)
    return done


def _parts(target: Path, source: ResolvedSource, candidate: Candidate, precision: Precision) -> Path:
    """The folder of unfinished work, named after all that decides it."""
    decisive = [source.model_dump(mode="json"), candidate.config.model_dump(mode="json"), precision]
    digest = hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:12]
    folder = target.with_name(f"{target.name}.{digest}.parts")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _chunks(source: ResolvedSource) -> Iterator[pl.DataFrame]:
    """Column `text` in pieces of `CHUNK` rows, wherever the reader's own pieces end."""
    waiting = pl.DataFrame(schema={"text": pl.String})
    report = ReadReport(source.name)
    for frame in read_source(source, report, max_bad_share=1.0):
        if report.rejected:
            raise SourceError(
                f"{source.name}: {report.bad[0]}; expected text in every record, or vectors would not stand beside "
                "their rows: correct it"
            )
        waiting = pl.concat([waiting, frame.select(pl.first().alias("text"))])
        while len(waiting) >= CHUNK:
            yield waiting[:CHUNK]
            waiting = waiting[CHUNK:]
    if len(waiting):
        yield waiting


@dataclass(frozen=True)
class _Encoding:
    """Texts to vectors, by a network that is loaded when the first text comes."""

    site: Site
    candidate: Candidate
    precision: Precision

    def __call__(self, texts: list[str]) -> NDArray[np.float32]:
        from models.encoder.encode import encode

        network, tokenizer = self._loaded
        return encode(network, tokenizer, texts, device=device_of(self.site), bf16=self.precision == "bf16")

    @cached_property
    def _loaded(self) -> tuple[Encoder, PreTrainedTokenizerBase]:
        from models.encoder.loading import load_encoder

        settle_threads(self.site)
        return load_encoder(encoder_folder(self.site.open_store(), self.candidate.encoder), self.candidate.config)
