"""Statistics of a corpus: counts of dropped sentences by reason, lengths and sample rows."""

from __future__ import annotations

import polars as pl

from storage.record import Record

SAMPLE_ROWS = 20
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
HISTOGRAM_EDGES = (1, 16, 32, 48, 64, 96, 128, 192, 256, 512, 1024)


class LengthBin(Record):
    """A bar of the length histogram."""

    low: int
    """Minimal number of characters in this bin."""
    high: int | None
    """Maximal number of characters in this bin; None in the last bin."""
    sentences: int
    """Number of published sentences in this bin."""


class SampleSentence(Record):
    """A sample sentence of a corpus."""

    text: str
    source: str
    lang: str


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
    samples: tuple[SampleSentence, ...]
    """The published sentences with the smallest ids, a random sample since ids are hashes."""


class Tally:
    """Collects the statistics of a corpus while it is streamed."""

    def __init__(self) -> None:
        self.read = self.empty = self.too_short = self.too_long = self.unique = self.published = 0
        self._lengths: list[pl.DataFrame] = []
        self._sources: dict[str, int] = {}
        self._samples: list[SampleSentence] = []

    def publish(self, part: pl.DataFrame) -> None:
        """Count a part of the corpus as it is written, in order."""
        self.published += part.height
        self._lengths.append(
            part.lazy().group_by(chars=pl.col("text").str.len_chars()).agg(sentences=pl.len()).collect()
        )
        for source, count in part["source"].value_counts().iter_rows():
            self._sources[source] = self._sources.get(source, 0) + count
        missing = SAMPLE_ROWS - len(self._samples)
        rows = part.head(missing).select("text", "source", "lang").iter_rows(named=True)
        self._samples.extend(SampleSentence(**row) for row in rows)

    def figures(self) -> CorpusStatistics:
        """Return the statistics so far."""
        lengths = _merged(self._lengths)
        total = max(self.published, 1)
        return CorpusStatistics(
            read=self.read,
            empty=self.empty,
            too_short=self.too_short,
            too_long=self.too_long,
            duplicates=self.read - self.empty - self.too_short - self.too_long - self.unique,
            unique=self.unique,
            published=self.published,
            mean_chars=round(int((lengths["chars"] * lengths["sentences"]).sum()) / total, 2),
            quantiles=_quantiles(lengths),
            histogram=_histogram(lengths),
            per_source=dict(sorted(self._sources.items())),
            samples=tuple(self._samples),
        )


def _merged(lengths: list[pl.DataFrame]) -> pl.DataFrame:
    """Return distinct lengths in ascending order with their counts, as Int64."""
    empty = pl.DataFrame(schema={"chars": pl.Int64, "sentences": pl.Int64})
    frames = [frame.cast(pl.Int64) for frame in lengths]
    return pl.concat([empty, *frames]).group_by("chars").agg(pl.col("sentences").sum()).sort("chars")


def _quantiles(lengths: pl.DataFrame) -> dict[str, int]:
    """Return quantiles of lengths: the smallest length that at least a share q of the sentences does not exceed."""
    if lengths.is_empty():
        return {}
    cumulative = lengths["sentences"].cum_sum()
    total = int(cumulative[-1])
    rows = [int(cumulative.search_sorted(share * total, side="left")) for share in QUANTILES]
    return {
        f"p{round(share * 100):02d}": int(lengths["chars"][min(row, lengths.height - 1)])
        for share, row in zip(QUANTILES, rows, strict=True)
    }


def _histogram(lengths: pl.DataFrame) -> tuple[LengthBin, ...]:
    bins = []
    for low, following in zip(HISTOGRAM_EDGES, (*HISTOGRAM_EDGES[1:], None), strict=True):
        inside = pl.col("chars") >= low if following is None else pl.col("chars").is_between(low, following - 1)
        count = int(lengths.filter(inside)["sentences"].sum())
        bins.append(LengthBin(low=low, high=None if following is None else following - 1, sentences=count))
    return tuple(bins)
