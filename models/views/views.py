"""From sentences and their translations to views: each sentence is followed through its hops, every loss is counted.

A route is a frame with one row per sentence and six columns (`ROUTE`):

- `sentence_id`, `source`: the sentence it began with;
- `key`, `text`: where it is now, and the id under which the next hop's translation is found;
- `reason`, `hop`: why and at which hop (from 1) it was given up; null while it is well.

Translations are keyed by the sentence they translate (the translation memory), not by the run that asked for them, so a
German sentence that two English ones lead to is translated back once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from models.corpus.normalize import normalize, sentence_ids
from models.runtime.seeded_order import scattered
from models.translation.filters import FilterConfig, closeness, verdict
from models.views.config import ORIGINAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


VIEWS = pl.Schema({"sentence_id": pl.UInt64, "method": pl.String, "text": pl.String})
ROUTE = pl.Schema(
    {
        "sentence_id": pl.UInt64,
        "source": pl.String,
        "key": pl.UInt64,
        "text": pl.String,
        "reason": pl.String,
        "hop": pl.UInt8,
    }
)
JUDGED = pl.Schema(
    {
        "sentence_id": pl.UInt64,
        "method": pl.String,
        "source": pl.String,
        "text": pl.String,
        "reason": pl.String,
        "hop": pl.UInt8,
    }
)
"""Columns of judged views: one row per view that was made; `reason` is null where it is kept."""


def begin_route(corpus: pl.LazyFrame) -> pl.LazyFrame:
    """A route before its first hop.

    Args:
        corpus: Unique sentences: sentence_id, text.
    """
    return corpus.select(
        "sentence_id",
        pl.col("text").alias("source"),
        pl.col("sentence_id").alias("key"),
        "text",
        reason=pl.lit(None, dtype=pl.String),
        hop=pl.lit(None, dtype=pl.UInt8),
    )


def sentences_ahead(route: pl.LazyFrame) -> pl.LazyFrame:
    """What the next hop has to translate: sentence_id and text, each sentence once; what was given up is left out."""
    well = route.filter(pl.col("reason").is_null())
    return well.select(pl.col("key").alias("sentence_id"), "text").unique("sentence_id")


def follow_hop(
    route: pl.LazyFrame, translations: pl.LazyFrame, hop: int, filters: FilterConfig, lang: str | None = None
) -> pl.LazyFrame:
    """Move every sentence of a route through one translator, and give up those whose translation is not fit.

    Args:
        route: The route so far.
        translations: sentence_id (of the sentence translated) and text (its translation), one row per sentence.
        hop: Number of this hop, from 1.
        filters: Limits beyond which a translation is given up.
        lang: Language that the translations must be in; not looked at if None.
    """
    found = translations.select(pl.col("sentence_id").alias("key"), normalize(pl.col("text")).alias("translated"))
    is_well = pl.col("reason").is_null()
    joined = route.join(found, on="key", how="left")
    judged = joined.with_columns(
        pl.when(is_well).then(verdict(pl.col("text"), pl.col("translated"), filters, lang)).alias("fault"),
        pl.when(is_well).then("translated").otherwise("text").alias("text"),
    )
    is_faulty = pl.col("fault").is_not_null()
    return judged.select(
        "sentence_id",
        "source",
        sentence_ids(pl.col("text")).alias("key"),
        "text",
        pl.coalesce("reason", "fault").alias("reason"),
        pl.when(is_faulty).then(pl.lit(hop, dtype=pl.UInt8)).otherwise("hop").alias("hop"),
    )


def original_view(corpus: pl.LazyFrame) -> pl.LazyFrame:
    """The sentence itself as a view: sentence_id, method, text."""
    return corpus.select("sentence_id", pl.lit(ORIGINAL).alias("method"), "text")


def judged_route(route: pl.LazyFrame, method: str) -> pl.LazyFrame:
    """The views at the end of a route, those that were given up on the way with their reason."""
    return route.with_columns(method=pl.lit(method)).select(JUDGED.names())


def judged_views(corpus: pl.LazyFrame, views: pl.LazyFrame) -> pl.LazyFrame:
    """Views that no route led to (sentence_id, method, text) beside the sentences they are views of."""
    joined = views.join(corpus.select("sentence_id", pl.col("text").alias("source")), on="sentence_id")
    unjudged = joined.with_columns(reason=pl.lit(None, dtype=pl.String), hop=pl.lit(None, dtype=pl.UInt8))
    return unjudged.select(JUDGED.names())


def held_apart(judged: pl.LazyFrame, filters: FilterConfig) -> pl.LazyFrame:
    """Give up views in their sentence's language that say it in too many or too few of its own words."""
    return judged.with_columns(pl.coalesce("reason", closeness(pl.col("source"), pl.col("text"), filters)))


def kept_views(judged: pl.LazyFrame) -> pl.LazyFrame:
    """The views that nothing speaks against: sentence_id, method, text."""
    return judged.filter(pl.col("reason").is_null()).select("sentence_id", "method", "text")


def ordered_views(views: Sequence[pl.LazyFrame]) -> pl.LazyFrame:
    """All views of a corpus in the one order that makes equal views equal bytes: by sentence_id, then method."""
    return pl.concat(views).sort("sentence_id", "method")


def sampled(views: pl.LazyFrame, rows: int) -> pl.DataFrame:
    """Of a part of the sentences, or of all, the views of those that a sample of all may hold.

    Args:
        views: sentence_id, method, text; all views of the sentences that it holds.
        rows: Sentences of the sample.
    """
    drawn = views.select(pl.col("sentence_id").unique()).sort(scattered(pl.col("sentence_id"), 0)).head(rows)
    return views.join(drawn, on="sentence_id", how="semi").collect()


def view_samples(views: pl.DataFrame, rows: int) -> pl.DataFrame:
    """A few sentences with all their views side by side, to be looked at.

    Args:
        views: As `sampled` gives them for each part of the sentences, with the same rows.
        rows: Sentences to show.

    Returns:
        One row per sentence, one column per method (the original first, if there is one); null where it was dropped.
    """
    return _side_by_side(sampled(views.lazy(), rows))


def view_examples(parts: Sequence[pl.LazyFrame], rows: int, min_chars: int = 30) -> pl.DataFrame:
    """Sentences whose views show something: all there, no two equal, none shorter than `min_chars`.

    Args:
        parts: sentence_id, method, text of ranges of sentences, in the order of their ids.
        rows: Sentences to show.
        min_chars: Characters of the shortest view.

    Returns:
        As `view_samples`, the first by sentence_id.
    """
    sizes = [part.group_by("sentence_id").len().select(pl.col("len").max()) for part in parts]
    most = pl.concat([size.collect() for size in sizes]).to_series().max()
    shown = [pl.DataFrame(schema=VIEWS)]
    for part in parts:
        missing = rows - sum(frame["sentence_id"].n_unique() for frame in shown)
        if not missing:
            break
        whole = part.with_columns(
            n=pl.len().over("sentence_id"),
            distinct=pl.col("text").n_unique().over("sentence_id"),
            shortest=pl.col("text").str.len_chars().min().over("sentence_id"),
        ).filter(pl.col("n") == most, pl.col("distinct") == pl.col("n"), pl.col("shortest") >= min_chars)
        first = whole.select(pl.col("sentence_id").unique()).sort("sentence_id").head(missing)
        shown.append(part.join(first, on="sentence_id", how="semi").collect())
    return _side_by_side(pl.concat(shown))


def _side_by_side(views: pl.DataFrame) -> pl.DataFrame:
    wide = views.pivot("method", index="sentence_id", values="text")
    methods = sorted(set(wide.columns) - {"sentence_id"}, key=lambda method: (method != ORIGINAL, method))
    return wide.sort("sentence_id").select(methods)


def given_views(frames: Iterable[pl.DataFrame], corpus: pl.LazyFrame, method: str) -> pl.DataFrame:
    """The views of the corpus's sentences, the first of each sentence.

    Args:
        frames: text, view (raw texts), in the order of the source.
        corpus: sentence_id of the sentences that there are.
        method: Name of the view.

    Returns:
        sentence_id, method, text, sorted by sentence_id; a view without text is left out.
    """
    empty = pl.DataFrame(schema={"sentence_id": pl.UInt64, "text": pl.String})
    rows = pl.concat([empty, *map(_identified, frames)])
    known = corpus.select("sentence_id").collect()["sentence_id"].implode()
    inside = rows.filter(pl.col("sentence_id").is_in(known), pl.col("text") != "")
    first = inside.unique("sentence_id", keep="first", maintain_order=True).sort("sentence_id")
    return first.select("sentence_id", pl.lit(method).alias("method"), "text").cast(VIEWS)


def _identified(frame: pl.DataFrame) -> pl.DataFrame:
    sentence_id = sentence_ids(normalize(pl.col("text")))
    return frame.select(sentence_id.alias("sentence_id"), normalize(pl.col("view")).alias("text"))
