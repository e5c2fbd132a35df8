"""Subsample frequent words, so that the content words of a view have more weight.

Word2vec subsamples frequent words when it reads text (Mikolov et al., 2013, section 2.3); here it is the last step
before two views become a pair. The mean vector of a small masked language model depends too much on function words and
punctuation; training on views with different ones makes the model ignore them.
"""

from __future__ import annotations

import polars as pl

from models.runtime.partitions import scattered

_ROWS = 65_536  # texts whose words are in memory at a time; a word takes fifty bytes, a sentence has about twenty words
_COUNT = pl.len().cast(pl.UInt64)
MIN_WORDS = 2  # with fewer words left, the text stays unchanged


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
    parts = [_thinned(part, shares, threshold, seed) for part in texts.iter_slices(_ROWS)]
    return pl.concat(parts) if parts else texts["text"]


def _thinned(texts: pl.DataFrame, shares: pl.DataFrame, threshold: float, seed: int) -> pl.Series:
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
