"""Make views from sentences and their translations through several hops, and record every dropped sentence.

A route is a frame with one row per sentence and six columns (`ROUTE`):

- `sentence_id`, `source`: the original sentence;
- `key`, `text`: id and text of the sentence after the last hop, for the next hop;
- `reason`, `hop`: why and at which hop (from 1) the sentence was dropped; null for the others.

The translation memory is keyed by the translated sentence, not by the run. So if two English sentences give the same
German sentence, it is translated back once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from bsl.models.corpus.normalize import normalize, sentence_ids
from bsl.models.translation.filters import Texts, translation_reason, view_reason
from bsl.models.views.config import ORIGINAL
from bsl.storage.artifacts.schemas import VIEWS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bsl.models.translation.filters import AnyFilter


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
    {"sentence_id": pl.UInt64, "method": pl.String}
    | {name: ROUTE[name] for name in ("source", "text", "reason", "hop")}
)
"""Columns of judged views: one row per view; `reason` is null for a kept view."""


def begin_route(corpus: pl.LazyFrame) -> pl.LazyFrame:
    """Return a route before its first hop.

    Args:
        corpus: Unique sentences: sentence_id, text.
    """
    return corpus.select(
        "sentence_id",
        pl.col("text").alias("source"),
        pl.col("sentence_id").alias("key"),
        "text",
    ).match_to_schema(ROUTE, missing_columns="insert")


def sentences_ahead(route: pl.LazyFrame) -> pl.LazyFrame:
    """Return the sentences for the next hop, without dropped ones: sentence_id and text, each sentence once."""
    kept = route.filter(pl.col("reason").is_null())
    return kept.select(pl.col("key").alias("sentence_id"), "text").unique("sentence_id")


def follow_hop(
    route: pl.LazyFrame, translations: pl.LazyFrame, hop: int, filters: tuple[AnyFilter, ...], lang: str | None = None
) -> pl.LazyFrame:
    """Replace every sentence of a route by its translation, and drop sentences whose translation fails the filters.

    Args:
        route: The route so far.
        translations: sentence_id (of the translated sentence) and text (its translation), one row per sentence.
        hop: Number of this hop, from 1.
        filters: Filters of translations.
        lang: Expected language of the translations; None does not check it.
    """
    found = translations.select(pl.col("sentence_id").alias("key"), normalize(pl.col("text")).alias("translated"))
    is_kept = pl.col("reason").is_null()
    joined = route.join(found, on="key", how="left")
    judged = joined.with_columns(
        pl.when(is_kept)
        .then(translation_reason(Texts(pl.col("text"), pl.col("translated"), lang), filters))
        .alias("fault"),
        pl.when(is_kept).then("translated").otherwise("text").alias("text"),
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


def judged_route(route: pl.LazyFrame, method: str) -> pl.LazyFrame:
    """Return the views at the end of a route, with the dropped ones and their reason."""
    return route.with_columns(method=pl.lit(method)).select(JUDGED.names())


def judged_views(corpus: pl.LazyFrame, views: pl.LazyFrame) -> pl.LazyFrame:
    """Return views made without translation (sentence_id, method, text) with their source sentences."""
    joined = views.join(corpus.select("sentence_id", pl.col("text").alias("source")), on="sentence_id")
    return joined.match_to_schema(JUDGED, missing_columns="insert")


def filter_finished(judged: pl.LazyFrame, filters: tuple[AnyFilter, ...]) -> pl.LazyFrame:
    """Drop finished views in their sentence's language that fail a filter."""
    return judged.with_columns(pl.coalesce("reason", view_reason(Texts(pl.col("source"), pl.col("text")), filters)))


def kept_views(judged: pl.LazyFrame, corpus: pl.LazyFrame | None = None) -> pl.LazyFrame:
    """Return the views that are not dropped, and the sentences of `corpus` as views: sentence_id, method, text.

    They are sorted by sentence_id and method, so that equal views give equal bytes.
    """
    passed = judged.filter(pl.col("reason").is_null()).select("sentence_id", "method", "text")
    originals = [] if corpus is None else [corpus.select("sentence_id", pl.lit(ORIGINAL).alias("method"), "text")]
    return pl.concat([*originals, passed]).sort("sentence_id", "method")


def view_samples(views: pl.DataFrame, rows: int) -> pl.DataFrame:
    """Return the first sentences by id, a random sample since ids are hashes, with all their views, for display.

    Returns:
        One row per sentence, one column per method (the original first, if any); null for a dropped view.
    """
    return _side_by_side(views.filter(pl.col("sentence_id").rank("dense") <= rows))


def view_examples(parts: Sequence[pl.LazyFrame], rows: int, min_chars: int = 30) -> pl.DataFrame:
    """Return example sentences that have all views, no two equal, none shorter than `min_chars`.

    Args:
        parts: sentence_id, method, text of ranges of sentences, in the order of their ids.
        rows: Number of sentences to show.
        min_chars: Least number of characters of a view.

    Returns:
        As `view_samples`, for the first such sentences by sentence_id.
    """
    sizes = [part.group_by("sentence_id").len().select(pl.col("len").max()) for part in parts]
    most = pl.concat([size.collect() for size in sizes]).to_series().max()
    shown = [pl.DataFrame(schema=VIEWS)]
    for part in parts:
        missing = rows - sum(frame["sentence_id"].n_unique() for frame in shown)
        if not missing:
            break
        complete = part.with_columns(
            n=pl.len().over("sentence_id"),
            distinct=pl.col("text").n_unique().over("sentence_id"),
            shortest=pl.col("text").str.len_chars().min().over("sentence_id"),
        ).filter(pl.col("n") == most, pl.col("distinct") == pl.col("n"), pl.col("shortest") >= min_chars)
        first = complete.select(pl.col("sentence_id").unique()).sort("sentence_id").head(missing)
        shown.append(part.join(first, on="sentence_id", how="semi").collect())
    return _side_by_side(pl.concat(shown))


def _side_by_side(views: pl.DataFrame) -> pl.DataFrame:
    wide = views.pivot("method", index="sentence_id", values="text")
    methods = sorted(set(wide.columns) - {"sentence_id"}, key=lambda method: (method != ORIGINAL, method))
    return wide.sort("sentence_id").select(methods)


def given_views(
    frames: Iterable[pl.DataFrame], corpus: pl.LazyFrame, method: str
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Return the first view that the sources give for each sentence of the corpus, and the counts.

    Args:
        frames: text, view (raw texts), in the order of the source.
        corpus: sentence_id of all sentences.
        method: Name of the view.

    Returns:
        sentence_id, method, text, sorted by sentence_id; and numbers of rows: `read`, which is the sum of `empty` (no
        view), `outside` (the sentence is not in the corpus), `repeated` (a further view of a sentence) and `views`.
    """
    empty = pl.DataFrame(schema={"sentence_id": pl.UInt64, "text": pl.String})
    rows = pl.concat([empty, *map(_identified, frames)])
    known = corpus.select("sentence_id").collect()["sentence_id"].implode()
    full = rows.filter(pl.col("text") != "")
    inside = full.filter(pl.col("sentence_id").is_in(known))
    first = inside.unique("sentence_id", keep="first", maintain_order=True).sort("sentence_id")
    return first.select("sentence_id", pl.lit(method).alias("method"), "text").cast(VIEWS), {
        "read": rows.height,
        "empty": rows.height - full.height,
        "outside": full.height - inside.height,
        "repeated": inside.height - first.height,
        "views": first.height,
    }


def _identified(frame: pl.DataFrame) -> pl.DataFrame:
    sentence_id = sentence_ids(normalize(pl.col("text")))
    return frame.select(sentence_id.alias("sentence_id"), normalize(pl.col("view")).alias("text"))
