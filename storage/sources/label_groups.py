"""Columns that group labelled rows: documents, writers, customers, threads.

Rows of one group resemble each other more than rows of two. If a group is in both parts of the split, the test measures
new rows of known groups, and the difference on new groups may be far smaller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from bsl.storage.errors import SourceError
from bsl.storage.readers.columns import named, require
from bsl.storage.sources.own_text import TITLES

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAMES: Final = (
    "document", "document_id", "doc", "doc_id", "article_id", "thread", "thread_id", "conversation", "conversation_id",
    "dialogue_id", "session", "session_id", "book", "url", "page", "writer", "writer_id", "author", "author_id", "user",
    "user_id", "username", "customer", "customer_id", "account", "account_id", "client", "client_id", "speaker",
    "speaker_id", "reviewer", "reviewer_id", "patient", "patient_id", "company", "product", "product_id",
)  # fmt: skip
"""Usual names of such columns."""
_FEWEST: Final = 10  # values of a column without such a name; fewer are rather a property, such as a priority
_ROWS: Final = 3  # mean rows of a value of such a column
_DECIMAL: Final = r"^[+-]?\d+[.,]\d+$"


def require_groups(path: str, table: pl.DataFrame, column: str, label: str, texts: Sequence[str]) -> None:
    """Check a named column of groups.

    Raises:
        SourceError: The column is missing, is the label or a text, or has fewer than two values.
    """
    require(path, table.columns, [column], "with `--document`")
    if column in (label, *texts):
        role = "label" if column == label else "text"
        raise SourceError(f"{path}: {column!r} is the {role} and cannot group rows too. Name another --document.")
    if (count := table[column].drop_nulls().n_unique()) < 2:
        raise SourceError(
            f"{path}: {column!r} has {count} value, expected at least two groups of rows. Name another --document."
        )


def likely_group(table: pl.DataFrame, label: str, texts: Sequence[str]) -> str | None:
    """Return the column that looks most like groups of rows; None without one.

    Such a column has a usual name, or many values of several rows each. Titles, texts and other forms of the label are
    excluded, and so are decimal numbers.

    Args:
        table: All columns that can be read, as strings; null for blank cells.
        label: Column of labels.
        texts: Text columns.
    """
    others = [name for name in table.columns if name not in (label, *texts) and name.lower() not in TITLES]
    usual = [name for name in named(others, _NAMES) if _repeats(table[name], 2, 1) and not _same(table, name, label)]
    found = usual or [
        name for name in others if _repeats(table[name], _FEWEST, _ROWS) and not _is_of_label(table, name, label)
    ]
    return found[0] if found else None


def group_names(values: pl.Expr, texts: pl.Expr) -> pl.Expr:
    """Return the groups of rows; a row without a value is in a group with those of its text."""
    alone = pl.format("text: {}", texts)  # by the text, so that the order of rows changes no group
    return pl.when(values.is_null()).then(alone).otherwise(values)


def _repeats(values: pl.Series, fewest: int, rows: float) -> bool:
    """Return whether a column has several values, of several rows each, and no value has most of the rows."""
    known = values.drop_nulls()
    count = known.n_unique()
    if not fewest <= count <= len(known) / rows or count == len(known) or len(known) < len(values) / 2:
        return False
    largest = int(known.value_counts()["count"].max())  # type: ignore[arg-type]  # a count
    return largest <= len(known) / 2 and not bool(known.str.contains(_DECIMAL).any())


def _is_of_label(table: pl.DataFrame, name: str, label: str) -> bool:
    """Return whether one of a column and the label follows from the other, such as a coarse from a fine class."""
    both = table.select(name, label).drop_nulls()
    return both.n_unique() in (both[name].n_unique(), both[label].n_unique())


def _same(table: pl.DataFrame, name: str, label: str) -> bool:
    both = table.select(name, label).drop_nulls()
    return both.n_unique() == both[name].n_unique() == both[label].n_unique()
