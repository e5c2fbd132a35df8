"""Training pairs from views: two wordings of one sentence.

The paper pairs the round trip through German with the round trip through French (BSL, section 3.2); its ablation pairs
the sentence itself with one view (section 4.4); its multilingual models pair the sentence with each translation.

Frequent words may be subsampled, so that the content words of a view have more weight. Word2vec does so when it reads
text (Mikolov et al., 2013, section 2.3); here it is the last step before two views become a pair. The mean vector of a
small masked language model depends too much on function words and punctuation; training on views with different ones
makes the model ignore them.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final, Self

import polars as pl
from pydantic import Field, model_validator

from bsl.models.errors import TrainingError
from bsl.models.runtime.partitions import Partitions, scattered
from bsl.storage.artifacts.schemas import PAIRS
from bsl.storage.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from bsl.models.runtime.partitions import Ranges

SHUFFLED: Final = pl.Schema([*PAIRS.items(), ("place", pl.UInt64())])
"""Columns of training pairs, with the place in training order."""
_ROWS = 65_536  # texts whose words are in memory at a time; a word takes fifty bytes, a sentence has about twenty words
_COUNT = pl.len().cast(pl.UInt64)
MIN_WORDS = 2  # with fewer words left, the text stays unchanged


REHEARSAL: Final = "embedded:stsb/train"
"""Scored set whose sentences keep their vectors during training on labels."""
OWN_LABELS: Final = "own/labels"
"""Name of the training labels of the run's own text, as a scored set."""


class ViewPair(Record):
    """Two views that are paired, and their languages."""

    view_1: str = Field(min_length=1)
    """Method of the first view, such as `bt-de` or `original`."""

    view_2: str = Field(min_length=1)
    """Method of the second view."""

    lang_1: str = Field("en", pattern=r"^[a-z]{2,3}$")
    """Language of the first view, ISO 639-1."""

    lang_2: str = Field("en", pattern=r"^[a-z]{2,3}$")
    """Language of the second view, ISO 639-1."""

    @property
    def source(self) -> str:
        """Name of the pairing in the `source` column."""
        return f"{self.view_1}|{self.view_2}"


class PairConfig(Record):
    """Settings of training pairs: which views are paired, and the order of the pairs."""

    pairings: tuple[ViewPair, ...] = Field((ViewPair(view_1="bt-de", view_2="bt-fr"),), min_length=1)
    """The pairings; a sentence with both views of a pairing gives one pair for it."""

    labelled: bool = False
    """Use annotated pairs of the sources with their labels, not `pairings`; for objectives that need labels."""

    scored: str | None = Field(None, pattern=r"^[^/]+/[^/]+$")
    """Use the pairs of a scored set, such as `stsb/train`, with their scores, not `pairings`; for objectives that need
    scores. `own/labels`: the training labels of `ingest.own_text`."""

    shuffle_seed: int | None = Field(0, ge=0, lt=2**32)
    """Seed of the order of the pairs; None sorts them by pairing, then by sentence_id."""

    drop_identical: bool = False
    """Exclude pairs of two identical texts, whose views differ only by dropout."""

    subsample_words: float | None = Field(None, gt=0, le=1)
    """Delete frequent words of both texts at random (see `bsl.models.views.pairs`), except words up to this relative
    frequency. Deviation: the paper does not change its views (None)."""

    @model_validator(mode="after")
    def _pairings_differ(self) -> Self:
        names = [pairing.source for pairing in self.pairings]
        if repeated := [name for name in names if names.count(name) > 1]:
            raise ValueError(
                f"pairs.pairings has {repeated[0]} twice, which would repeat each pair. Remove one of them."
            )
        return self

    @model_validator(mode="after")
    def _of_one_kind(self) -> Self:
        if self.labelled and self.scored is not None:
            raise ValueError(
                f"pairs.labelled and pairs.scored={self.scored} are both set, but no pair has a label and a score. Use "
                "one here, and the other in an earlier training."
            )
        return self


def build_pairs(views: Ranges, config: PairConfig, bits: int, scratch: Path) -> Iterator[pl.DataFrame]:
    """Return all training pairs, in training order, in several frames.

    Args:
        views: sentence_id, method, text, by ranges of sentence_id.
        config: The pairings and the order.
        bits: Binary logarithm of the number of ranges (see `bsl.models.runtime.partitions`).
        scratch: An empty folder for data that does not fit into memory; the caller removes it.

    Yields:
        pair_id (UInt64, always the same for a sentence and a pairing), sentence_id, text_1, text_2, lang_1, lang_2,
        source (`bt-de|bt-fr`); label, score and group are null, because views do not have them.
    """
    frames = _in_order(views, config, bits, scratch)
    return frames if config.subsample_words is None else _thinned(frames, config.subsample_words, scratch)


def _in_order(views: Ranges, config: PairConfig, bits: int, scratch: Path) -> Iterator[pl.DataFrame]:
    if config.shuffle_seed is None:
        for source in sorted({pairing.source for pairing in config.pairings}):
            pairings = tuple(pairing for pairing in config.pairings if pairing.source == source)
            for number in range(1 << bits):
                yield _paired(views(number), pairings, config).sort("sentence_id").collect()
        return
    table = Partitions(scratch / "pairs", SHUFFLED, "place", bits=bits)
    place = scattered(pl.col("pair_id"), config.shuffle_seed)
    for number in range(1 << bits):
        table.add(_paired(views(number), config.pairings, config).with_columns(place=place).collect())
    for rows in table:
        yield rows.drop("place")


def _thinned(frames: Iterable[pl.DataFrame], threshold: float, scratch: Path) -> Iterator[pl.DataFrame]:
    """Subsample words after counting them over all pairs, which are on disk meanwhile."""
    sides, folder = ("text_1", "text_2"), scratch / "whole"
    folder.mkdir()
    counts = {side: WordCounts() for side in sides}
    for number, rows in enumerate(frames):
        for side in sides:
            counts[side].add(rows[side])
        rows.write_ipc(folder / f"{number}.arrow", compression="lz4")
    shares = [counts[side].shares() for side in sides]
    for number in range(len(list(folder.iterdir()))):
        rows = pl.read_ipc((folder / f"{number}.arrow").read_bytes())
        texts = [rows.select(pl.col("pair_id").alias("id"), pl.col(side).alias("text")) for side in sides]
        first, second = (thinned(*side, threshold, seed) for seed, side in enumerate(zip(texts, shares, strict=True)))
        yield rows.with_columns(text_1=first, text_2=second)


def count_pairs(views: Ranges, config: PairConfig, bits: int) -> pl.DataFrame:
    """Count the pairs that each pairing gives, and the sentences that it loses.

    Args:
        views: As for `build_pairs`.
        config: The pairings.
        bits: As for `build_pairs`.

    Returns:
        source, sentences (with at least one of the views), only_view_1, only_view_2, identical, pairs; one row per
        pairing.
    """
    table = pl.concat(
        _counted(views(number), pairing, config).with_columns(place=place).collect()
        for number in range(1 << bits)
        for place, pairing in enumerate(config.pairings)
    )
    return table.group_by("place", "source").agg(pl.all().sum()).sort("place").drop("place")


def require_pairs(counts: pl.DataFrame) -> None:
    """Refuse a pairing that no sentence has both views of, and pairings that give identical texts only.

    Args:
        counts: Result of `count_pairs`.

    Raises:
        TrainingError: There is such a pairing; the message has its name and counts.
    """
    if counts["pairs"].sum() == 0 and (same := counts["identical"].sum()):
        raise TrainingError(
            f"no pairs are left: both views of all {same:,} pairs are the same text, and pairs.drop_identical excludes "
            "such pairs. Use longer sentences or another view, or set pairs.drop_identical=false."
        )
    empty = counts.filter(pl.col("sentences") == pl.col("only_view_1") + pl.col("only_view_2"))
    for row in empty.iter_rows(named=True):
        raise TrainingError(
            f"pairing {row['source']} gives no pairs: {row['only_view_1']:,} sentences have only the first view, "
            f"{row['only_view_2']:,} only the second, none has both. The page of the views counts dropped ones; views "
            "are made of sentences in their language, so check `lang` of the sources, or remove the pairing from "
            "pairs.pairings."
        )


def _paired(views: pl.LazyFrame, pairings: Iterable[ViewPair], config: PairConfig) -> pl.LazyFrame:
    pairs = pl.concat([_side_by_side(views, pairing) for pairing in pairings])
    return pairs.filter(pl.col("text_1") != pl.col("text_2")) if config.drop_identical else pairs


def _side_by_side(views: pl.LazyFrame, pairing: ViewPair) -> pl.LazyFrame:
    first, second = _both(views, pairing)
    seed = int.from_bytes(hashlib.sha256(pairing.source.encode()).digest()[:4], "big")
    return (
        first.join(second, on="sentence_id")
        .select(
            scattered(pl.col("sentence_id"), seed).alias("pair_id"),
            "sentence_id",
            "text_1",
            "text_2",
            lang_1=pl.lit(pairing.lang_1),
            lang_2=pl.lit(pairing.lang_2),
            source=pl.lit(pairing.source),
        )
        .match_to_schema(PAIRS, missing_columns="insert")
    )


def _counted(views: pl.LazyFrame, pairing: ViewPair, config: PairConfig) -> pl.LazyFrame:
    first, second = _both(views, pairing)
    has_1, has_2 = pl.col("text_1").is_not_null(), pl.col("text_2").is_not_null()
    is_identical = pl.col("text_1") == pl.col("text_2")
    dropped = is_identical.sum() if config.drop_identical else pl.lit(0, dtype=pl.UInt32)
    return first.join(second, on="sentence_id", how="full", coalesce=True).select(
        source=pl.lit(pairing.source),
        sentences=pl.len(),
        only_view_1=(has_1 & ~has_2).sum(),
        only_view_2=(has_2 & ~has_1).sum(),
        identical=is_identical.sum(),
        pairs=(has_1 & has_2).sum() - dropped,
    )


def _both(views: pl.LazyFrame, pairing: ViewPair) -> Iterator[pl.LazyFrame]:
    """Return the texts of both views of a pairing, by `sentence_id`."""
    for side, method in (("text_1", pairing.view_1), ("text_2", pairing.view_2)):
        yield views.filter(pl.col("method") == method).select("sentence_id", pl.col("text").alias(side))


class WordCounts:
    """Case-insensitive word counts over texts added in parts."""

    def __init__(self) -> None:
        self._counts = pl.DataFrame(schema={"lower": pl.String, "n": pl.UInt64})

    def add(self, texts: pl.Series) -> None:
        """Count the words of some texts."""
        for part in texts.alias("text").to_frame().iter_slices(_ROWS):
            words = part.lazy().select(lower=_words("text")).explode("lower", empty_as_null=False)
            frames = [self._counts.lazy(), words.group_by(pl.col("lower").str.to_lowercase()).agg(n=_COUNT)]
            self._counts = pl.concat(frames).group_by("lower").agg(pl.col("n").sum()).collect()

    def shares(self) -> pl.DataFrame:
        """Return the relative frequency of each word: `lower` (the word in lower case) and `share`."""
        return self._counts.select("lower", share=pl.col("n") / pl.col("n").sum())


def thinned(texts: pl.DataFrame, shares: pl.DataFrame, threshold: float, seed: int) -> pl.Series:
    """Keep each word of relative frequency f with probability min(1, √(threshold / f)).

    Args:
        texts: `id` (UInt64, unique) and `text`.
        shares: Result of `WordCounts.shares` over all texts that are subsampled together.
        threshold: Frequency up to which every occurrence is kept; 1e-3 leaves about half of an English sentence.
        seed: Decides each word, with the id and the place in the text; the order of the rows does not matter.

    Returns:
        The texts in their order, with words and punctuation marks joined by spaces. A text that would have fewer than
        `MIN_WORDS` left is unchanged.
    """
    parts = [_thinned_part(part, shares, threshold, seed) for part in texts.iter_slices(_ROWS)]
    return pl.concat(parts) if parts else texts["text"]


def _thinned_part(texts: pl.DataFrame, shares: pl.DataFrame, threshold: float, seed: int) -> pl.Series:
    words = (
        texts.lazy()
        .select(key=scattered(pl.col("id"), seed), row=pl.int_range(pl.len(), dtype=pl.UInt32), word=_words("text"))
        .explode("word", empty_as_null=False)
        .with_columns(
            place=pl.int_range(pl.len(), dtype=pl.UInt64).over("row"), lower=pl.col("word").str.to_lowercase()
        )
        .join(shares.lazy(), on="lower", how="left", maintain_order="left")
        .with_columns(drawn=scattered(pl.col("key") ^ pl.col("place"), seed).cast(pl.Float64) / 2.0**64)
        .filter(pl.col("drawn") < (threshold / pl.col("share")).sqrt())
    )
    thinned = words.group_by("row", maintain_order=True).agg(n=pl.len(), thin=pl.col("word").str.join(" ")).collect()
    rows = texts.with_row_index("row").join(thinned, on="row", how="left", maintain_order="left")
    return rows.select(pl.when(pl.col("n") >= MIN_WORDS).then("thin").otherwise("text").alias("text")).to_series()


def _words(column: str) -> pl.Expr:
    return pl.col(column).str.extract_all(r"\w+|[^\w\s]")
