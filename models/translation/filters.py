"""Which translations are not fit to be used: empty, looping, of an odd length, copied, in another language.

Finished views may also be too far from their sentence or too close to it.

The papers keep every pair, so recipes of their rows take `UNFILTERED`, which drops only what has no text.
Verdicts are Polars expressions over a column of sources and one of translations, so that millions of rows stream.
A short translation equal to its source (names, numbers, "OK") is allowed.

The language is told by the odds between languages. py3langid (naive Bayes over byte n-grams, 140 languages, 4.5 MB with
its model in the package) was measured on 3,000 Tatoeba sentences each of English, German, French, Spanish, Turkish and
Arabic, half of them shorter than 35 characters: at odds of 30 it calls at most 0.07 % of right ones wrong and finds
95 % or more of wrong ones. The probability of the best language alone does worse: a short sentence shares it among
languages that resemble each other.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import polars as pl
from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from py3langid.langid import LanguageIdentifier


class FilterConfig(BaseModel):
    """Limits beyond which a translation is dropped. Deviation: all but `UNFILTERED`."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    max_length_ratio: float | None = Field(3.0, gt=1, le=100)
    """Most characters of the longer text per character of the shorter one, the slack added to both; None allows any
    length."""

    length_slack: int = Field(15, ge=0, le=1000)
    """Characters added to both sides before the ratio is taken, so that "Yes." may become "Yes, that is so."."""

    max_repeats: int | None = Field(3, ge=1, le=7)
    """Times that a phrase of one to four words may stand in a row; one more is a loop, unless the source loops too.
    None keeps all loops."""

    copied_words: int | None = Field(6, ge=1)
    """Words from which on a translation equal to its source, case aside, is dropped as not translated; shorter ones
    may be names, numbers or "OK". None keeps all copies."""

    language_odds: float | None = Field(30.0, gt=1)
    """A translation is dropped if another language is so many times as probable as its own; None does not look."""

    min_overlap: float = Field(0.0, ge=0, le=1)
    """Least share of words (`overlap`) that a view in its sentence's language has in common with it; 0 drops none."""

    max_overlap: float = Field(1.0, ge=0, le=1)
    """Largest such share; below 1 it drops views that say the same in the same words."""


UNFILTERED: Final = FilterConfig(max_length_ratio=None, max_repeats=None, copied_words=None, language_odds=None)
"""Drops only what has no text (`missing`, `empty`): the papers name no filter."""

EXAMPLES: Final = 3
"""Rows shown of each outcome."""


def verdict(source: pl.Expr, translation: pl.Expr, config: FilterConfig, lang: str | None = None) -> pl.Expr:
    """Column `reason`: why each translation is dropped, or null where it is good.

    One of `missing`, `empty`, `loop`, `too_long`, `too_short`, `copy` and `language`, tried in this order.

    Args:
        source: Texts that were translated.
        translation: What they became; null where there is no translation.
        config: The limits.
        lang: Language that the translation must be in (ISO 639-1); not looked at if None.
    """
    ratio = (translation.str.len_chars() + config.length_slack) / (source.str.len_chars() + config.length_slack)
    longest = config.max_length_ratio or float("inf")
    return (
        pl.when(translation.is_null())
        .then(pl.lit("missing"))
        .when(translation.str.strip_chars() == "")
        .then(pl.lit("empty"))
        .when(_begins_to_loop(source, translation, config.max_repeats))
        .then(pl.lit("loop"))
        .when(ratio > longest)
        .then(pl.lit("too_long"))
        .when(ratio < 1 / longest)
        .then(pl.lit("too_short"))
        .when(_is_copy(source, translation, config.copied_words))
        .then(pl.lit("copy"))
        .when(_is_foreign(translation, lang, config.language_odds))
        .then(pl.lit("language"))
        .otherwise(pl.lit(None, dtype=pl.String))
        .alias("reason")
    )


def closeness(source: pl.Expr, view: pl.Expr, config: FilterConfig) -> pl.Expr:
    """Column `reason`: `too_far` or `too_close`, or null where a view's words are within the limits."""
    if config.min_overlap == 0 and config.max_overlap == 1:
        return pl.lit(None, dtype=pl.String).alias("reason")  # a share is within these, and words are dear to compare
    shared = overlap(source, view)
    return (
        pl.when(shared < config.min_overlap)
        .then(pl.lit("too_far"))
        .when(shared > config.max_overlap)
        .then(pl.lit("too_close"))
        .otherwise(pl.lit(None, dtype=pl.String))
        .alias("reason")
    )


def overlap(one: pl.Expr, other: pl.Expr) -> pl.Expr:
    """Dice coefficient of two texts' sets of words, case and punctuation aside, in [0, 1]; 1 if neither has a word."""
    ours, theirs = (text.str.to_lowercase().str.extract_all(r"\w+").list.unique() for text in (one, other))
    common, both = ours.list.set_intersection(theirs).list.len(), ours.list.len() + theirs.list.len()
    return pl.when(both == 0).then(1.0).otherwise(2.0 * common / both)


def _begins_to_loop(source: pl.Expr, translation: pl.Expr, max_repeats: int | None) -> pl.Expr:
    if max_repeats is None:
        return pl.lit(value=False)
    return loops(translation, max_repeats) & ~loops(source, max_repeats)


def _is_copy(source: pl.Expr, translation: pl.Expr, words: int | None) -> pl.Expr:
    if words is None:
        return pl.lit(value=False)
    same = source.str.to_lowercase() == translation.str.to_lowercase()
    return same & (source.str.count_matches(r"\w+") >= words)


def _is_foreign(translation: pl.Expr, lang: str | None, odds: float | None) -> pl.Expr:
    return pl.lit(value=False) if lang is None or odds is None else speaks_another(translation, lang, odds)


def loops(text: pl.Expr, max_repeats: int) -> pl.Expr:
    """Whether a phrase of one to four words, or a few characters inside one word, stand in a row too often.

    The test is a regular expression with a back-reference, which Polars' engine does not have. It runs only on texts
    that can match at all: those that repeat a word `max_repeats` times, or hold a word of 16 characters.
    """
    words = text.str.split(" ")
    repeats = words.list.len() - words.list.n_unique() >= max_repeats  # both u32; there are never more unique words
    candidate = repeats | text.str.contains(r"\S{16}")
    has_loop = _loop_finder(max_repeats)

    def find(texts: pl.Series) -> pl.Series:
        return pl.Series([text is not None and has_loop(text) for text in texts], dtype=pl.Boolean)

    return pl.when(candidate).then(text).map_batches(find, return_dtype=pl.Boolean, is_elementwise=True)


def _loop_finder(max_repeats: int) -> Callable[[str], bool]:
    phrase = rf"(?<!\S)(\S+(?: \S+){{0,3}})(?: \1){{{max_repeats},}}(?!\S)"
    characters = r"(\S)\2{15,}|(\S{2,8}?)\3{7,}"  # at least 16 characters either way
    pattern = re.compile(f"{phrase}|{characters}")
    return lambda text: pattern.search(text) is not None


def count_drops(judged: pl.LazyFrame) -> pl.DataFrame:
    """Count what was kept and what was dropped of some rows, by reason, with examples.

    Args:
        judged: One row per sentence and view: method, source, text, hop (1-based hop that failed; null if it was the
            finished view) and reason (null if kept).

    Returns:
        method, outcome (`kept`, `kept: copy of the source`, `hop 2: loop` or `too_far`), n, and as lists source and
        text of its `EXAMPLES` shortest sources, which are the quickest to read.
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
    """The counts of several lots of rows as one table.

    Args:
        counts: As `count_drops` gives them.

    Returns:
        The columns of `count_drops` and the share of the method's rows; ordered by method and falling n.
    """
    lots = pl.concat(counts)
    groups = ("method", "outcome")
    shown = lots.explode("source", "text").group_by(groups).agg(*_quickest())
    table = lots.group_by(groups).agg(pl.col("n").sum()).join(shown, on=groups)
    share = (pl.col("n") / pl.col("n").sum().over("method")).alias("share")
    columns = ["method", "outcome", "n", "share", "source", "text"]
    return table.with_columns(share).select(columns).sort("method", "n", "outcome", descending=[False, True, False])


def _quickest() -> list[pl.Expr]:
    shortest = pl.struct(pl.col("source").str.len_chars().alias("n_chars"), "source")
    return [pl.col(name).bottom_k_by(shortest, EXAMPLES).alias(name) for name in ("source", "text")]


def speaks_another(text: pl.Expr, lang: str, odds: float) -> pl.Expr:
    """Whether another language is at least `odds` times as probable as `lang`; false for languages it cannot tell."""

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
