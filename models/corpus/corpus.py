"""Build a corpus from raw texts (normalise, filter by length, deduplicate, sort by id), and its statistics.

    chunks ─▶ normalise, id, length bounds ─▶ partitions (memory, then scratch files) ─▶ unique, sorted ─▶ equal parts

Memory depends on the chunk size and a fixed budget, not on the size of the corpus. The parts depend only on the
sentences and on the source of each one's first occurrence, not on the division into chunks.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl
from pydantic import Field

from bsl.models.corpus.normalize import NormalizeConfig, normalize, sentence_ids
from bsl.models.errors import EmptyCorpusError, SentenceIdCollisionError
from bsl.models.runtime.partitions import MEMORY_BYTES, Partitions, equal_frames
from bsl.storage.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from bsl.models.runtime.progress import OnProgress

CORPUS_VERSION: Final = 5  # increase when the same sources would give different bytes
PART_ROWS: Final = 500_000  # about 25 MB of Parquet
_ROWS: Final = pl.Schema({"sentence_id": pl.UInt64, "text": pl.String, "origin": pl.UInt32})
SAMPLE_ROWS = 20
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
HISTOGRAM_EDGES = (1, 16, 32, 48, 64, 96, 128, 192, 256, 512, 1024)
_BITS: Final = 6  # 64 ranges: 10 M sentences make parts of about 20 MB


class CorpusConfig(Record):
    """Configuration of a corpus, without its sources."""

    normalize: NormalizeConfig = NormalizeConfig()
    """Bounds on the length of sentences."""
    limit: int | None = Field(None, ge=1)
    """Maximal number of sentences: those with the smallest ids, a random sample that does not depend on the order of
    reading."""


@dataclass(frozen=True)
class TextChunk:
    """Raw texts of one source.

    Attributes:
        texts: Raw strings.
        source: Name of the source.
        lang: Language as an ISO 639-1 code.
        limit: Maximal number of sentences of the source in the corpus; None for no limit.
        number: Distinguishes sources of equal name, language and limit, each of which has its own limit.
    """

    texts: pl.Series
    source: str
    lang: str
    limit: int | None = None
    number: int = 0


class LengthBin(Record):
    """A bar of the length histogram."""

    low: int
    """Minimal number of characters in this bin."""
    high: int | None
    """Maximal number of characters in this bin; None in the last bin."""
    sentences: int
    """Number of published sentences in this bin."""


class CorpusStatistics(Record):
    """Counts from sentences read to sentences published; `read` is the sum of the next five fields."""

    read: int
    """Sentences read; a pair counts as two."""
    empty: int
    """Dropped: empty after normalisation."""
    too_short: int
    """Dropped: fewer characters than `min_chars`."""
    too_long: int
    """Dropped: more characters than `max_chars`."""
    duplicates: int
    """Dropped: equal normalised text as an earlier sentence."""
    unique: int
    """Distinct sentences."""
    published: int
    """Sentences in the corpus: `unique`, or fewer if limits apply."""
    mean_chars: float
    """Mean length of the published sentences, in characters."""
    quantiles: dict[str, int]
    """Length in characters at `p05` … `p100` of the published sentences."""
    histogram: tuple[LengthBin, ...]
    """Published sentences by length."""
    per_source: dict[str, int]
    """Number of published sentences by the source of their first occurrence."""
    samples: tuple[dict[str, str], ...]
    """`text`, `source` and `lang` of the published sentences with the smallest ids, a random sample since ids are
    hashes."""


def build_corpus(
    chunks: Iterable[TextChunk],
    config: CorpusConfig,
    scratch: Path,
    write_part: Callable[[pl.DataFrame], None],
    on_progress: OnProgress,
    memory_bytes: int = MEMORY_BYTES,
) -> CorpusStatistics:
    """Write a corpus in parts and return its statistics.

    Args:
        chunks: Texts, source after source; a sentence gets `source` and `lang` of its first occurrence.
        config: Bounds on length, and the limit.
        scratch: An empty folder for rows that do not fit into memory; the caller removes it.
        write_part: Called with frames of `sentence_id` (u64), `text`, `source`, `lang`, ids ascending over all parts,
            each of `PART_ROWS` rows except the last.
        on_progress: Called with (sentences read, 0 since the total is unknown, one line of text).
        memory_bytes: Memory for rows before they are written to `scratch`; does not change the result.

    Raises:
        EmptyCorpusError: No sentence is left.
        SentenceIdCollisionError: Two different sentences have the same id.
    """
    tally, origins = _Tally(), _Origins()
    partitions = Partitions(scratch, _ROWS, bits=_BITS, memory_bytes=memory_bytes, tidy=deduplicate)
    for chunk in chunks:
        partitions.add(_prepare(chunk, config.normalize, origins, tally))
        on_progress(tally.read, 0, f"{tally.read:,} sentences read")
    limited = _limited(_limited_by_source(partitions, origins, tally), config.limit)
    for part in equal_frames(limited, PART_ROWS):
        frame = origins.name(part)
        tally.publish(frame)
        write_part(frame)
        on_progress(tally.read, 0, f"{tally.read:,} sentences read, {tally.published:,} unique sentences written")
    if not tally.published:
        raise EmptyCorpusError(_explain_empty(tally, config.normalize))
    return tally.figures()


class _Origins:
    """Numbers for (source, lang, limit, number), so that a row has four bytes instead of two strings."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str, int | None, int], int] = {}

    @property
    def limits(self) -> dict[int, int]:
        """Number → maximal number of sentences, for sources with a limit."""
        return {number: limit for (_, _, limit, _), number in self._numbers.items() if limit is not None}

    def number(self, chunk: TextChunk) -> int:
        origin = (chunk.source, chunk.lang, chunk.limit, chunk.number)
        return self._numbers.setdefault(origin, len(self._numbers))

    def name(self, frame: pl.DataFrame) -> pl.DataFrame:
        sources = pl.Series([source for source, _, _, _ in self._numbers], dtype=pl.String)
        langs = pl.Series([lang for _, lang, _, _ in self._numbers], dtype=pl.String)
        origin = frame["origin"]
        return frame.select("sentence_id", "text", source=sources.gather(origin), lang=langs.gather(origin)).rechunk()


def _prepare(chunk: TextChunk, bounds: NormalizeConfig, origins: _Origins, tally: _Tally) -> pl.DataFrame:
    """Normalise, filter and deduplicate one chunk, and count what is dropped."""
    frame = chunk.texts.to_frame("text").select(text=normalize(pl.col("text")).fill_null(""))
    chars = frame.select(pl.col("text").str.len_chars()).to_series()
    empty, too_short, too_long = (
        int(verdict.sum()) for verdict in (chars == 0, chars < bounds.min_chars, chars > bounds.max_chars)
    )
    tally.read += frame.height
    tally.empty += empty
    tally.too_short += too_short - empty  # min_chars is at least 1, so an empty text is also too short
    tally.too_long += too_long
    if too_short or too_long:
        frame = frame.filter(chars.is_between(bounds.min_chars, bounds.max_chars))
    origin = pl.lit(origins.number(chunk), dtype=pl.UInt32)
    return deduplicate(frame.select(sentence_ids(pl.col("text")).alias("sentence_id"), "text", origin=origin))


def _limited_by_source(partitions: Iterable[pl.DataFrame], origins: _Origins, tally: _Tally) -> Iterator[pl.DataFrame]:
    """Apply the limits of sources: keep the sentences with the smallest ids; partitions come in the order of ids."""
    given: Counter[int] = Counter()
    for partition in partitions:
        tally.unique += partition.height
        limited = partition
        for origin, limit in origins.limits.items():
            of_origin = limited["origin"] == origin
            limited = limited.filter(~of_origin | (of_origin.cum_sum() <= limit - given[origin]))
            given[origin] += int((limited["origin"] == origin).sum())
        yield limited


def _limited(partitions: Iterable[pl.DataFrame], limit: int | None) -> Iterator[pl.DataFrame]:
    remaining: float = math.inf if limit is None else limit
    for partition in partitions:
        limited = partition if partition.height <= remaining else partition.head(int(remaining))
        remaining -= limited.height
        if limited.height:
            yield limited


def _explain_empty(tally: _Tally, bounds: NormalizeConfig) -> str:
    return (
        f"the corpus is empty: of {tally.read:,} sentences read, {tally.empty:,} are empty, {tally.too_short:,} are "
        f"shorter than {bounds.min_chars} and {tally.too_long:,} are longer than {bounds.max_chars} characters. Check "
        "the sources, their columns and split, or change ingest.corpus.normalize.min_chars and .max_chars in the "
        "recipe."
    )


def deduplicate(frame: pl.DataFrame) -> pl.DataFrame:
    """Deduplicate rows by sentence id: keep the first row of every id, sorted by id.

    Args:
        frame: Columns `sentence_id` (UInt64), `text` and any others, rows in the order of reading.

    Returns:
        The same columns, ids strictly ascending. All other columns are those of the first occurrence.

    Raises:
        SentenceIdCollisionError: Two different texts have the same id.
    """
    # A stable sort makes equal ids adjacent, the first occurrence first. One pass then finds duplicates and collisions.
    # It is as fast as a hash table here, and the output must be sorted anyway.
    ordered = frame.sort("sentence_id", maintain_order=True)
    repeated = (pl.col("sentence_id") == pl.col("sentence_id").shift(1)).fill_null(value=False)
    other_text = pl.col("text") != pl.col("text").shift(1)
    marked = ordered.select(repeated=repeated, collides=repeated & other_text)
    if marked["collides"].any():
        _refuse(ordered, marked["collides"])
    return ordered.filter(~marked["repeated"])


def _refuse(ordered: pl.DataFrame, collides: pl.Series) -> None:
    row = int(collides.arg_true()[0])
    identity, second = ordered["sentence_id"][row], ordered["text"][row]
    raise SentenceIdCollisionError(
        f"two different sentences have the same id {identity:#018x}: {ordered['text'][row - 1]!r} and {second!r}. The "
        "probability of this is about 1 in 40,000 for 30 million sentences. Remove one of the sentences."
    )


class _Tally:
    """Collects the statistics of a corpus while it is streamed."""

    def __init__(self) -> None:
        self.read = self.empty = self.too_short = self.too_long = self.unique = self.published = 0
        self._lengths, self._sources = Counter[int](), Counter[str]()
        self._samples: list[dict[str, str]] = []

    def publish(self, part: pl.DataFrame) -> None:
        """Count a part of the corpus as it is written, in order."""
        self.published += part.height
        self._lengths.update(dict(part["text"].str.len_chars().value_counts().iter_rows()))
        self._sources.update(dict(part["source"].value_counts().iter_rows()))
        missing = SAMPLE_ROWS - len(self._samples)
        self._samples += part.head(missing).select("text", "source", "lang").to_dicts()

    def figures(self) -> CorpusStatistics:
        """Return the statistics so far."""
        lengths = self._lengths
        total = max(self.published, 1)
        return CorpusStatistics(
            read=self.read,
            empty=self.empty,
            too_short=self.too_short,
            too_long=self.too_long,
            duplicates=self.read - self.empty - self.too_short - self.too_long - self.unique,
            unique=self.unique,
            published=self.published,
            mean_chars=round(sum(chars * count for chars, count in lengths.items()) / total, 2),
            quantiles=_quantiles(lengths),
            histogram=_histogram(lengths),
            per_source=dict(sorted(self._sources.items())),
            samples=tuple(self._samples),
        )


def _quantiles(lengths: Counter[int]) -> dict[str, int]:
    """Return quantiles of lengths: the smallest length that at least a share q of the sentences does not exceed."""
    if not lengths:
        return {}
    chars, counts = zip(*sorted(lengths.items()), strict=True)
    rows = np.searchsorted(np.cumsum(counts), np.array(QUANTILES) * sum(counts))
    return {
        f"p{round(share * 100):02d}": chars[min(int(row), len(chars) - 1)]
        for share, row in zip(QUANTILES, rows, strict=True)
    }


def _histogram(lengths: Counter[int]) -> tuple[LengthBin, ...]:
    highest = (*(edge - 1 for edge in HISTOGRAM_EDGES[1:]), None)
    return tuple(
        LengthBin(
            low=low, high=high, sentences=sum(n for chars, n in lengths.items() if low <= chars <= (high or chars))
        )
        for low, high in zip(HISTOGRAM_EDGES, highest, strict=True)
    )
