"""Filter bad translations: empty, of a sentence in capitals, looping, of an odd length, copied, or in another language.

Finished views may also be too far from their sentence or too close to it. Rows without text are always dropped.

A filter is a class here, with its settings and its conditions, and a member of `AnyFilter`; `FILTERS` are the default.
The papers mention no filter, so recipes of their rows use none. Conditions are Polars expressions over a column of
sources and one of translations, so that millions of rows stream.

The language filter uses the odds between languages, by py3langid (naive Bayes over byte n-grams, 140 languages, 4.5 MB
with its model in the package). It was measured on 3,000 Tatoeba sentences each of English, German, French, Spanish,
Turkish and Arabic, half of them shorter than 35 characters. At odds of 30 it drops at most 0.07 % of correct sentences
and at least 95 % of those in the five other languages together (91 % of Spanish ones in place of French). The
probability of the best language alone is worse, because similar languages share the probability of a short sentence.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal, NamedTuple

import polars as pl
from pydantic import BeforeValidator, Field

from bsl.storage.record import Record, named

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from py3langid.langid import LanguageIdentifier


class Texts(NamedTuple):
    """What a filter compares: expressions over a column of sources and one of texts made from them.

    Attributes:
        source: The sources.
        made: Their translations, or their finished views.
        lang: Expected language of `made` (ISO 639-1); None if unknown.
    """

    source: pl.Expr
    made: pl.Expr
    lang: str | None = None


class Filter(Record):
    """Settings and conditions of a filter."""

    of_finished: ClassVar[bool] = False
    """Whether it filters finished views in their sentence's language, instead of every translation on the way."""

    @abstractmethod
    def faults(self, texts: Texts) -> dict[str, pl.Expr]:
        """Return reason → condition on which a text is dropped."""


class CapitalsFilter(Filter):
    """Drop the translation of a sentence in capitals: translators have seen few, and return other meanings."""

    name: Literal["capitals"] = "capitals"
    words: int = Field(3, ge=1)
    """Least number of words in capitals."""

    def faults(self, texts: Texts) -> dict[str, pl.Expr]:
        """Return whether the source is in capitals."""
        return {"capitals": in_capitals(texts.source, self.words)}


class LoopFilter(Filter):
    """Drop a translation that repeats a phrase of one to four words in a row, unless its source does too."""

    name: Literal["loop"] = "loop"
    repeats: int = Field(3, ge=1, le=7)
    """Largest number of occurrences in a row."""

    def faults(self, texts: Texts) -> dict[str, pl.Expr]:
        """Return whether only the translation repeats itself."""
        return {"loop": loops(texts.made, self.repeats) & ~loops(texts.source, self.repeats)}


class LengthFilter(Filter):
    """Drop a translation that is much longer or shorter than its source, in characters."""

    name: Literal["length"] = "length"
    ratio: float = Field(3.0, gt=1, le=100)
    """Largest ratio of the longer text to the shorter one, with the slack added to both."""
    slack: int = Field(15, ge=0, le=1000)
    """Characters added to both lengths, so that "Yes." may become "Yes, that is so."."""

    def faults(self, texts: Texts) -> dict[str, pl.Expr]:
        """Return whether the ratio of the lengths is too large or too small."""
        ratio = (texts.made.str.len_chars() + self.slack) / (texts.source.str.len_chars() + self.slack)
        return {"too_long": ratio > self.ratio, "too_short": ratio < 1 / self.ratio}


class CopyFilter(Filter):
    """Drop a translation equal to its source, ignoring case; a short one may be names, numbers or "OK"."""

    name: Literal["copy"] = "copy"
    words: int = Field(6, ge=1)
    """Least number of words of a source that must not be copied."""

    def faults(self, texts: Texts) -> dict[str, pl.Expr]:
        """Return whether a long source was copied."""
        same = texts.source.str.to_lowercase() == texts.made.str.to_lowercase()
        return {"copy": same & (texts.source.str.count_matches(r"\w+") >= self.words)}


class LanguageFilter(Filter):
    """Drop a translation in another language than the expected one."""

    name: Literal["language"] = "language"
    odds: float = Field(30.0, gt=1)
    """Odds of another language to the expected one at which a translation is dropped."""

    def faults(self, texts: Texts) -> dict[str, pl.Expr]:
        """Return whether another language is more probable."""
        return {} if texts.lang is None else {"language": speaks_another(texts.made, texts.lang, self.odds)}


class OverlapFilter(Filter):
    """Drop a view in its sentence's language that has too few or too many words in common with it (`overlap`)."""

    of_finished: ClassVar[bool] = True
    name: Literal["overlap"] = "overlap"
    least: float = Field(0.0, ge=0, le=1)
    """Least share of common words."""
    most: float = Field(1.0, ge=0, le=1)
    """Largest share of common words."""

    def faults(self, texts: Texts) -> dict[str, pl.Expr]:
        """Return whether the share is outside the limits."""
        shared = overlap(texts.source, texts.made)
        return {"too_far": shared < self.least, "too_close": shared > self.most}


AnyFilter = Annotated[
    CapitalsFilter | LoopFilter | LengthFilter | CopyFilter | LanguageFilter | OverlapFilter,
    Field(discriminator="name"),
    BeforeValidator(named),
]
FILTERS: Final[tuple[AnyFilter, ...]] = (
    CapitalsFilter(), LoopFilter(), LengthFilter(), CopyFilter(), LanguageFilter()
)  # fmt: skip
"""Filters of our own recipes."""
EXAMPLES: Final = 3
"""Rows shown of each outcome."""


def translation_reason(texts: Texts, filters: Iterable[AnyFilter]) -> pl.Expr:
    """Return column `reason`: why each translation is dropped, by the first condition that holds; null for good ones.

    `missing` and `empty` are checked before the filters' conditions.
    """
    faults = {"missing": texts.made.is_null(), "empty": texts.made.str.strip_chars() == ""}
    return _first_of(faults | _faults(texts, filters, finished=False))


def view_reason(texts: Texts, filters: Iterable[AnyFilter]) -> pl.Expr:
    """Return column `reason`: why each finished view is dropped; null for good ones."""
    return _first_of(_faults(texts, filters, finished=True))


def _faults(texts: Texts, filters: Iterable[AnyFilter], *, finished: bool) -> dict[str, pl.Expr]:
    chosen = [one for one in filters if one.of_finished is finished]
    return {reason: fault for one in chosen for reason, fault in one.faults(texts).items()}


def _first_of(faults: Mapping[str, pl.Expr]) -> pl.Expr:
    """Return column `reason`: the name of the first condition that holds; null if none does."""
    named = [pl.when(holds).then(pl.lit(name)) for name, holds in faults.items()]
    return pl.coalesce(*named, pl.lit(None, dtype=pl.String)).alias("reason")


def in_capitals(text: pl.Expr, words: int) -> pl.Expr:
    """Return whether a text has at least this many words of two or more letters, and no lower-case letter."""
    return ~text.str.contains(r"\p{Ll}") & (text.str.count_matches(r"\p{Lu}{2,}") >= words)


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
