"""Frequent words left out at random, so that a view speaks more of what its sentence is about.

Word2vec subsamples frequent words when it reads text (Mikolov et al., 2013, section 2.3); here it is the last step
before two views become a pair. A small masked language model's mean vector leans on function words and punctuation; two
views that keep different ones of them teach it not to.
"""

from __future__ import annotations

import polars as pl

from models.runtime.seeded_order import scattered

_ROWS = 65_536  # texts whose words are held at a time; a word takes fifty bytes, a sentence some twenty words
_COUNT = pl.len().cast(pl.UInt64)
MIN_WORDS = 2  # below that a view says nothing; it then stays as it was


class WordCounts:
    """Words of texts that come in lots, counted, case aside."""

    def __init__(self) -> None:
        self._counts = pl.DataFrame(schema={"lower": pl.String, "n": pl.UInt64})

    def add(self, texts: pl.Series) -> None:
        """Count the words of some texts."""
        for part in texts.alias("text").to_frame().iter_slices(_ROWS):
            words = part.lazy().select(lower=_words("text")).explode("lower", empty_as_null=False)
            lots = [self._counts.lazy(), words.group_by(pl.col("lower").str.to_lowercase()).agg(n=_COUNT)]
            self._counts = pl.concat(lots).group_by("lower").agg(pl.col("n").sum()).collect()

    def shares(self) -> pl.DataFrame:
        """`lower`, a word in lower case, and `share`, its part of all words."""
        return self._counts.select("lower", share=pl.col("n") / pl.col("n").sum())


def thinned(texts: pl.DataFrame, shares: pl.DataFrame, threshold: float, seed: int) -> pl.Series:
    """Each word of relative frequency f kept with probability min(1, √(threshold / f)).

    Args:
        texts: `id` (UInt64, each once) and `text`.
        shares: As `WordCounts` gives them, of these texts and all that are thinned out with them.
        threshold: frequency up to which every occurrence is kept; 1e-3 leaves about half of an English sentence.
        seed: with the id and the place in the text it decides each word, whatever the order of the rows.

    Returns:
        The texts in their order, words and punctuation marks joined by spaces; one of which fewer than `MIN_WORDS`
        would be left stays as it was.
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
    kept = words.group_by("row", maintain_order=True).agg(n=pl.len(), thin=pl.col("word").str.join(" ")).collect()
    rows = texts.with_row_index("row").join(kept, on="row", how="left", maintain_order="left")
    return rows.select(pl.when(pl.col("n") >= MIN_WORDS).then("thin").otherwise("text").alias("text")).to_series()


def _words(column: str) -> pl.Expr:
    return pl.col(column).str.extract_all(r"\w+|[^\w\s]")
