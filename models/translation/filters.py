"""Filter bad translations: empty, looping, of an odd length, copied, or in another language.

Finished views may also be too far from their sentence or too close to it.

The papers keep every pair, so recipes of their rows use `UNFILTERED`, which drops only rows without text. Verdicts are
Polars expressions over a column of sources and one of translations, so that millions of rows stream. A short
translation equal to its source (names, numbers, "OK") is allowed.

The language filter uses the odds between languages, by py3langid (naive Bayes over byte n-grams, 140 languages, 4.5 MB
with its model in the package). It was measured on 3,000 Tatoeba sentences each of English, German, French, Spanish,
Turkish and Arabic, half of them shorter than 35 characters. At odds of 30 it drops at most 0.07 % of correct sentences
and at least 95 % of wrong ones. The probability of the best language alone is worse, because similar languages share
the probability of a short sentence.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import polars as pl
from pydantic import Field

from storage.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from py3langid.langid import LanguageIdentifier


class FilterConfig(Record):
    """Limits beyond which a translation is dropped. Deviation: all settings except `UNFILTERED`."""

    max_length_ratio: float | None = Field(3.0, gt=1, le=100)
    """Largest ratio of characters of the longer text to the shorter one, with the slack added to both; None allows any
    length."""

    length_slack: int = Field(15, ge=0, le=1000)
    """Characters added to both lengths before taking the ratio, so that "Yes." may become "Yes, that is so."."""

    max_repeats: int | None = Field(3, ge=1, le=7)
    """Largest number of occurrences in a row of a phrase of one to four words; more are a loop, unless the source loops
    too. None keeps all loops."""

    copied_words: int | None = Field(6, ge=1)
    """Least number of words for dropping a translation equal to its source, ignoring case, as not translated; shorter
    ones may be names, numbers or "OK". None keeps all copies."""

    language_odds: float | None = Field(30.0, gt=1)
    """Odds of another language to the expected one at which a translation is dropped; None does not check."""

    min_overlap: float = Field(0.0, ge=0, le=1)
    """Least share of words (`overlap`) that a view in its sentence's language has in common with it; 0 drops none."""

    max_overlap: float = Field(1.0, ge=0, le=1)
    """Largest such share; below 1, views with nearly the same words are dropped."""


UNFILTERED: Final = FilterConfig(max_length_ratio=None, max_repeats=None, copied_words=None, language_odds=None)
"""Drops only rows without text (`missing`, `empty`), because the papers mention no filter."""

EXAMPLES: Final = 3
"""Rows shown of each outcome."""


def verdict(source: pl.Expr, translation: pl.Expr, config: FilterConfig, lang: str | None = None) -> pl.Expr:
    """Return column `reason`: why each translation is dropped; null for good ones.

    The reasons are `missing`, `empty`, `loop`, `too_long`, `too_short`, `copy` and `language`, checked in this order.

    Args:
        source: Source texts.
        translation: Translations of them; null if there is none.
        config: The limits.
        lang: Expected language of the translations (ISO 639-1); None does not check it.
    """
    faults = {"missing": translation.is_null(), "empty": translation.str.strip_chars() == ""}
    if config.max_repeats is not None:
        faults["loop"] = loops(translation, config.max_repeats) & ~loops(source, config.max_repeats)
    if config.max_length_ratio is not None:
        ratio = (translation.str.len_chars() + config.length_slack) / (source.str.len_chars() + config.length_slack)
        faults["too_long"] = ratio > config.max_length_ratio
        faults["too_short"] = ratio < 1 / config.max_length_ratio
    if config.copied_words is not None:
        same = source.str.to_lowercase() == translation.str.to_lowercase()
        faults["copy"] = same & (source.str.count_matches(r"\w+") >= config.copied_words)
    if lang is not None and config.language_odds is not None:
        faults["language"] = speaks_another(translation, lang, config.language_odds)
    return _first_of(faults)


def closeness(source: pl.Expr, view: pl.Expr, config: FilterConfig) -> pl.Expr:
    """Return column `reason`: `too_far` or `too_close`; null if a view's word overlap is within the limits."""
    if config.min_overlap == 0 and config.max_overlap == 1:
        return _first_of({})  # always within these limits; comparing is slow
    shared = overlap(source, view)
    return _first_of({"too_far": shared < config.min_overlap, "too_close": shared > config.max_overlap})


def _first_of(faults: Mapping[str, pl.Expr]) -> pl.Expr:
    """Return column `reason`: the name of the first condition that holds; null if none does."""
    named = [pl.when(holds).then(pl.lit(name)) for name, holds in faults.items()]
    return pl.coalesce(*named, pl.lit(None, dtype=pl.String)).alias("reason")


def overlap(one: pl.Expr, other: pl.Expr) -> pl.Expr:
    """Return the Dice coefficient of two texts' words, without case and punctuation: in [0, 1], 1 if both have none."""
    ours, theirs = (text.str.to_lowercase().str.extract_all(r"\w+").list.unique() for text in (one, other))
    common, both = ours.list.set_intersection(theirs).list.len(), ours.list.len() + theirs.list.len()
    return pl.when(both == 0).then(1.0).otherwise(2.0 * common / both)


def loops(text: pl.Expr, max_repeats: int) -> pl.Expr:
    """Return whether a phrase of one to four words, or a few characters inside one word, repeat in a row too often.

    The test needs a regular expression with a back-reference, which Polars' engine does not support. It runs only on
    texts that can match: those that repeat words `max_repeats` times, or have a word of 16 characters.
    """
    words = text.str.split(" ")
    repeats = words.list.len() - words.list.n_unique() >= max_repeats  # both u32; there are never more unique words
    candidate = repeats | text.str.contains(r"\S{16}")
    phrase = rf"(?<!\S)(\S+(?: \S+){{0,3}})(?: \1){{{max_repeats},}}(?!\S)"
    characters = r"(\S)\2{15,}|(\S{2,8}?)\3{7,}"  # at least 16 characters either way
    pattern = re.compile(f"{phrase}|{characters}")

    def find(texts: pl.Series) -> pl.Series:
        return pl.Series([text is not None and pattern.search(text) is not None for text in texts], dtype=pl.Boolean)

    return pl.when(candidate).then(text).map_batches(find, return_dtype=pl.Boolean, is_elementwise=True)


def count_drops(judged: pl.LazyFrame) -> pl.DataFrame:
    """Count kept and dropped rows by reason, with examples.

    Args:
        judged: One row per sentence and view: method, source, text, hop (1-based hop that failed; null if it was the
            finished view) and reason (null if kept).

    Returns:
        method, outcome (such as `kept`, `kept: copy of the source`, `hop 2: loop` or `too_far`), n, and as lists source
        and text of the `EXAMPLES` shortest sources, which are the quickest to read.
    """
    is_copy = pl.col("text") == pl.col("source")
    outcome = (
        pl.when(pl.col("reason").is_not_null())
        .then(pl.coalesce(pl.format("hop {}: {}", "hop", "reason"), "reason"))
        .when(is_copy)
        .then(pl.lit("kept: copy of the source"))
        .otherwise(pl.lit("kept"))
    )
    groups = judged.with_columns(outcome=outcome).group_by("method", "outcome")
    return groups.agg(pl.len().alias("n"), *_quickest()).collect()


def drop_table(counts: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Return the counts of several parts as one table.

    Args:
        counts: Results of `count_drops`.

    Returns:
        The columns of `count_drops` and the share of the method's rows; sorted by method and descending n.
    """
    parts = pl.concat(counts)
    groups = ("method", "outcome")
    shown = parts.explode("source", "text").group_by(groups).agg(*_quickest())
    table = parts.group_by(groups).agg(pl.col("n").sum()).join(shown, on=groups)
    share = (pl.col("n") / pl.col("n").sum().over("method")).alias("share")
    columns = ["method", "outcome", "n", "share", "source", "text"]
    return table.with_columns(share).select(columns).sort("method", "n", "outcome", descending=[False, True, False])


def _quickest() -> list[pl.Expr]:
    shortest = pl.struct(pl.col("source").str.len_chars().alias("n_chars"), "source")
    return [pl.col(name).bottom_k_by(shortest, EXAMPLES).alias(name) for name in ("source", "text")]


def speaks_another(text: pl.Expr, lang: str, odds: float) -> pl.Expr:
    """Return whether another language is more than `odds` times as probable as `lang`; False if `lang` is unknown."""

    def judge(texts: pl.Series) -> pl.Series:
        identifier = _identifier()
        known = lang in identifier.labels
        verdicts = [known and value is not None and _foreign(identifier, value, lang, odds) for value in texts]
        return pl.Series(verdicts, dtype=pl.Boolean)

    return text.map_batches(judge, return_dtype=pl.Boolean, is_elementwise=True)


def _foreign(identifier: LanguageIdentifier, text: str, lang: str, odds: float) -> bool:
    probabilities = dict(identifier.rank(text))
    return bool(max(probabilities.values()) > odds * probabilities[lang])


@lru_cache(maxsize=1)
def _identifier() -> LanguageIdentifier:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
