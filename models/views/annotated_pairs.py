"""Human annotations: training pairs with a class or a score, and entailed hypotheses as views (BSL, section 4.4)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import polars as pl

from bsl.models.corpus.nli import ENTAILMENT
from bsl.models.corpus.normalize import normalize, sentence_ids
from bsl.models.runtime.partitions import Partitions, in_range, scattered
from bsl.models.views.pairs import SHUFFLED
from bsl.storage.artifacts.schemas import PAIRS, VIEWS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from bsl.models.views.config import EntailView

REHEARSED_PER_PAIR: Final = 0.5
_LONG: Final = 8  # words of a sentence whose halves are still texts
_WITH_PREMISE: Final = pl.Schema(
    {
        "premise_id": pl.UInt64,
        "hypothesis_id": pl.UInt64,
        "label": pl.Int8,
        "text_1": pl.String,
        "lang_1": pl.String,
    }
)
_CHOSEN: Final = pl.Schema({"sentence_id": pl.UInt64, "method": pl.String, "hypothesis_id": pl.UInt64})


def labelled_pairs(
    corpus: pl.LazyFrame, nli: pl.LazyFrame, shuffle_seed: int | None, bits: int, scratch: Path
) -> Iterator[pl.DataFrame]:
    """Return the annotated pairs of a corpus's sources as training pairs, in training order, in several frames.

    Args:
        corpus: sentence_id, text, lang.
        nli: premise_id, hypothesis_id, label.
        shuffle_seed: Seed of the order; None keeps the pairs of a premise together.
        bits: Binary logarithm of the number of id ranges (see `bsl.models.runtime.partitions`).
        scratch: An empty folder for data that does not fit into memory; the caller removes it.

    Yields:
        As `bsl.models.views.pairs.build_pairs`: premise is view 1 and group, the hypothesis view 2; source `nli`.
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
        group="premise_id",
    ).match_to_schema(PAIRS, missing_columns="insert")


def scored_pairs(pairs: pl.DataFrame, highest: float, source: str, shuffle_seed: int | None) -> pl.DataFrame:
    """Return the pairs of a scored set as training pairs, in training order.

    Args:
        pairs: sentence1, sentence2, score.
        highest: Largest score of the set's scale, which becomes 1.
        source: Name of the set.
        shuffle_seed: Seed of the order; None keeps the order of the set.

    Returns:
        As `bsl.models.views.pairs.build_pairs`; English pairs with a score and neither label nor group.
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
        score=pl.col("score").cast(pl.Float32),
    ).match_to_schema(PAIRS, missing_columns="insert")
    return training if shuffle_seed is None else training.sort(scattered(pl.col("pair_id"), shuffle_seed))


def with_rehearsal(training: pl.DataFrame, rehearsed: Mapping[str, pl.DataFrame], seed: int) -> pl.DataFrame:
    """Add sentences to training pairs: `REHEARSED_PER_PAIR` pairs without a score, whose vectors are preserved.

    Args:
        training: As returned by `scored_pairs`.
        rehearsed: Name → sentence1, sentence2; each gives the same number of pairs, repeated if there are too few.
        seed: Seed of the draw.
    """
    count = math.ceil(REHEARSED_PER_PAIR * training.height / max(len(rehearsed), 1))
    drawn = (
        scored_pairs(
            pairs.sample(count, with_replacement=count > pairs.height, shuffle=True, seed=seed).with_columns(
                score=pl.lit(None, pl.Float64)
            ),
            1.0,
            name,
            None,
        )
        for name, pairs in rehearsed.items()
    )
    return pl.concat([training, *drawn])


def own_rehearsal(sentences: pl.Series, seed: int) -> pl.DataFrame:
    """Pair a user's sentences, and both halves of those with at least eight words, at random.

    A search has fewer words than the sentences that it finds, so parts of sentences keep their vectors too.

    Returns:
        sentence1, sentence2; each text once, one sentence twice if their number is odd.
    """
    words = pl.DataFrame({"word": sentences.str.split(" ")}).filter(pl.col("word").list.len() >= _LONG)
    middle = pl.col("word").list.len() // 2
    halves = (pl.col("word").list.head(middle), pl.col("word").list.slice(middle))
    parts = [words.select(half.list.join(" "))["word"] for half in halves]
    texts = pl.concat([sentences.rename("word"), *parts]).unique(maintain_order=True).shuffle(seed)
    if texts.len() % 2:
        texts = pl.concat([texts, texts.head(1)])
    return pl.DataFrame({"sentence1": texts.gather_every(2), "sentence2": texts.gather_every(2, 1)})


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


def entailed_views(
    corpus: pl.LazyFrame, nli: pl.LazyFrame, view: EntailView, bits: int, scratch: Path
) -> Iterator[pl.DataFrame]:
    """Return entailed hypotheses as views of their premises.

    If a premise has several, the seed ranks them by their ids alone. So the order of the rows does not matter, and a
    larger corpus changes a view only where a premise has a new hypothesis.

    Args:
        corpus: sentence_id, text.
        nli: premise_id, hypothesis_id, label.
        view: Settings with the number of hypotheses per premise, and the seed.
        bits: Binary logarithm of the number of id ranges (see `bsl.models.runtime.partitions`).
        scratch: An empty folder for data that does not fit into memory; the caller removes it.

    Yields:
        Frames of sentence_id, method (`entail`, `entail-2`, …), text, sorted by the first two; a premise without
        entailed hypothesis has no row.
    """
    chosen = Partitions(scratch / "chosen", _CHOSEN, "hypothesis_id", bits=bits)
    for number in range(1 << bits):
        chosen.add(_drawn(in_range(nli, number, bits, "premise_id"), view).collect())
    views = Partitions(scratch / "views", VIEWS, bits=bits, tidy=lambda rows: rows.sort("sentence_id", "method"))
    for number, rows in enumerate(chosen):
        texts = in_range(corpus, number, bits).select(pl.col("sentence_id").alias("hypothesis_id"), "text")
        views.add(rows.lazy().join(texts, on="hypothesis_id").select(*VIEWS).collect())
    return iter(views)


def _drawn(nli: pl.LazyFrame, view: EntailView) -> pl.LazyFrame:
    drawn = scattered(pl.col("hypothesis_id"), view.seed)
    ranked = (
        nli.filter(pl.col("label") == ENTAILMENT)
        .with_columns(rank=drawn.rank("ordinal").over("premise_id"))
        .filter(pl.col("rank") <= view.hypotheses)
    )
    methods = dict(enumerate(view.methods, start=1))
    return ranked.select(
        pl.col("premise_id").alias("sentence_id"),
        pl.col("rank").replace_strict(methods, return_dtype=pl.String).alias("method"),
        "hypothesis_id",
    )
