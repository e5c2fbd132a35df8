"""Training pairs with human annotations: a class, or a similarity score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from models.corpus.normalize import normalize, sentence_ids
from models.runtime.partitions import Partitions, in_range
from models.runtime.seeded_order import scattered
from models.views.pairs import SHUFFLED

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_WITH_PREMISE: Final = pl.Schema(
    {
        "premise_id": pl.UInt64,
        "hypothesis_id": pl.UInt64,
        "label": pl.Int8,
        "text_1": pl.String,
        "lang_1": pl.String,
    }
)


def labelled_pairs(
    corpus: pl.LazyFrame, nli: pl.LazyFrame, shuffle_seed: int | None, bits: int, scratch: Path
) -> Iterator[pl.DataFrame]:
    """Return the annotated pairs of a corpus's sources as training pairs, in training order, in several frames.

    Args:
        corpus: sentence_id, text, lang.
        nli: premise_id, hypothesis_id, label.
        shuffle_seed: Seed of the order; None keeps the pairs of a premise together.
        bits: Binary logarithm of the number of id ranges (see `models.runtime.partitions`).
        scratch: An empty folder for data that does not fit into memory; the caller removes it.

    Yields:
        As `models.views.pairs.build_pairs`; the premise is view 1 and the group, the hypothesis view 2; source `nli`.
    """
    half = Partitions(scratch / "premises", _WITH_PREMISE, "hypothesis_id", bits=bits)
    for number in range(1 << bits):
        premises = _side(in_range(corpus, number, bits), "premise_id", 1)
        half.add(
            in_range(nli, number, bits, "premise_id").join(premises, on="premise_id").select(*_WITH_PREMISE).collect()
        )
    pairs = Partitions(scratch / "pairs", SHUFFLED, "place", bits=bits, tidy=lambda rows: rows.sort("place", "pair_id"))
    place = pl.col("group") if shuffle_seed is None else scattered(pl.col("pair_id"), shuffle_seed)
    for number, rows in enumerate(half):
        hypotheses = _side(in_range(corpus, number, bits), "hypothesis_id", 2)
        joined = rows.lazy().join(hypotheses, on="hypothesis_id")
        pairs.add(_labelled(joined).with_columns(place=place).collect())
    return (rows.drop("place") for rows in pairs)


def _labelled(joined: pl.LazyFrame) -> pl.LazyFrame:
    pair_id = scattered(pl.col("premise_id") ^ scattered(pl.col("hypothesis_id"), 0), 0)
    return joined.select(
        # A pair with different labels by different annotators occurs once per label.
        pair_id=pair_id ^ pl.col("label").cast(pl.UInt64),
        sentence_id="premise_id",
        text_1="text_1",
        text_2="text_2",
        lang_1="lang_1",
        lang_2="lang_2",
        source=pl.lit("nli"),
        label="label",
        score=pl.lit(None, pl.Float32),
        group="premise_id",
    )


def scored_pairs(pairs: pl.DataFrame, highest: float, source: str, shuffle_seed: int | None) -> pl.DataFrame:
    """Return the pairs of a scored set as training pairs, in training order.

    Args:
        pairs: sentence1, sentence2, score.
        highest: Largest score of the set's scale, which becomes 1.
        source: Name of the set.
        shuffle_seed: Seed of the order; None keeps the order of the set.

    Returns:
        As `models.views.pairs.build_pairs`; English pairs with a score and neither label nor group.
    """
    graded = graded_pairs(pairs, highest).with_row_index("place")
    first, second = (sentence_ids(normalize(pl.col(name))) for name in ("text_1", "text_2"))
    # A set may contain one pair twice, with two scores: its row number makes the ids differ.
    pair_id = scattered(first ^ scattered(second, 0), 0) ^ scattered(pl.col("place").cast(pl.UInt64), 1)
    training = graded.select(
        pair_id=pair_id,
        sentence_id=first,
        text_1="text_1",
        text_2="text_2",
        lang_1=pl.lit("en"),
        lang_2=pl.lit("en"),
        source=pl.lit(source),
        label=pl.lit(None, pl.Int8),
        score=pl.col("score").cast(pl.Float32),
        group=pl.lit(None, pl.UInt64),
    )
    return training if shuffle_seed is None else training.sort(scattered(pl.col("pair_id"), shuffle_seed))


def graded_pairs(pairs: pl.DataFrame, highest: float) -> pl.DataFrame:
    """Return scored sentence pairs as training pairs.

    Args:
        pairs: sentence1, sentence2, score.
        highest: Largest score of the set's scale, which becomes 1.

    Returns:
        text_1, text_2, score; training refuses scores outside [0, 1].
    """
    return pairs.select(text_1="sentence1", text_2="sentence2", score=pl.col("score") / highest)


def both_orders(pairs: pl.DataFrame) -> pl.DataFrame:
    """Return all pairs (a, b), then all pairs (b, a): the cosine is the same, but dropout and batches differ."""
    swapped = pairs.with_columns(text_1="text_2", text_2="text_1")
    return pl.concat([pairs, swapped])


def _side(corpus: pl.LazyFrame, name: str, number: int) -> pl.LazyFrame:
    return corpus.select(pl.col("sentence_id").alias(name), **{f"text_{number}": "text", f"lang_{number}": "lang"})
