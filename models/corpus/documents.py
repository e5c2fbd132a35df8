"""Which records make a document, as far as the records themselves say.

The first that applies: a column names it (a record without a name stands alone); a heading begins it, as in wikis and
Markdown; lines in their order are their file's; a record of a table stands alone.
"""

from __future__ import annotations

from typing import Final

import polars as pl

_TITLE: Final = r"^\s*(?:#|=)\s+([^#=].*?)[\s#=]*$"
_HEADING: Final = r"^\s*(?:#{1,6}\s.*|(?:=\s*)+[^=].*=\s*)$"
_ARE_USUAL: Final = 2  # lines like titles: a file with so many has titles


def documents(records: pl.DataFrame, *, lines: bool, first: int) -> pl.DataFrame:
    """Records of one file with the number of each one's document.

    Args:
        records: `text`, `title`, `document` (strings, null where there is none), `record` (its number), in order.
        lines: whether the records are lines of a text, whose order means something.
        first: number of the first document.

    Returns:
        `document` (UInt32), `title`, `text`, `continues`; headings are gone.
    """
    records = records.with_columns(pl.col("document").str.strip_chars().replace("", None))  # CSV has no null
    title = pl.col("text").str.extract(_TITLE)
    again = (pl.col("record") == pl.col("record").shift(1)).fill_null(value=False)  # another column of the same record
    if records["document"].is_not_null().any():
        # A record that names none stands alone: what else is unnamed has nothing to do with it.
        own = pl.concat_str(pl.lit("r"), pl.col("record").cast(pl.String))
        named = pl.coalesce(pl.lit("d") + pl.col("document"), own).rank("dense") - 1
        goes_on = pl.col("document").is_not_null() | again
        return _numbered(records, named, first, title=pl.col("title"), continues=goes_on).sort(
            "document", maintain_order=True
        )
    if int(records.select(title.is_not_null().sum()).item()) >= _ARE_USUAL:
        begun = title.is_not_null().cum_sum()
        titled = records.with_columns(title=pl.coalesce(title.forward_fill(), pl.col("title")))
        kept = _numbered(titled, begun, first, title=pl.col("title"), continues=True)
        return kept.filter(~pl.col("text").str.contains(_HEADING))
    if lines:
        return _numbered(records, pl.lit(0), first, title=pl.col("title"), continues=True)
    return _numbered(records, pl.col("record"), first, title=pl.col("title"), continues=again)


def _numbered(
    records: pl.DataFrame, number: pl.Expr, first: int, *, title: pl.Expr, continues: bool | pl.Expr
) -> pl.DataFrame:
    return records.select(
        document=(number + first).cast(pl.UInt32),
        title=title,
        text=pl.col("text"),
        continues=continues if isinstance(continues, pl.Expr) else pl.lit(continues),
    )
