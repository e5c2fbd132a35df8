"""Tell labels from missing values, and make equal labels equal, however a format writes them.

- A null, a blank cell and a marker that programs write (`nan`, `<NA>`, `#N/A`) are missing.
- A word such as `NA`, `None` or `inf` is missing among numbers or in a single row, and else a class among words: a
  region or "no intent" may be spelt so.
- Numbers that are equal are one class, shown as written first: `1` and `1.0`.
- Classes that differ only in case, blanks, characters without width or the form of accents are one class, in its most
  frequent spelling (of equals, the first in the alphabet): `Location`, `location`.
- Yes and no, true and false are the scores 1 and 0.
- A comma in scores is a decimal comma, unless it may separate thousands everywhere: 0,5 and 1,25, not 1,250 alone.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

import polars as pl

_MACHINE: Final = ("nan", "NaN", "-nan", "-NaN", "<NA>", "#N/A", "#NA")
"""Missing values as pandas, Python's json and spreadsheets write them."""
MISSING_WORDS: Final = ("null", "NULL", "None", "NA", "N/A", "n/a")
"""Missing values as R, SQL and Python write them, which may also be names of classes."""
_INFINITE: Final = [sign + word for sign in ("", "+", "-") for word in ("inf", "Inf", "INF", "infinity", "Infinity")]
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,5})?", re.ASCII)
_DECIMAL_COMMA: Final = r"^[+-]?[0-9]+(,[0-9]+)?$"
_THOUSANDS: Final = r"^[+-]?([0-9]+|[1-9][0-9]{0,2},[0-9]{3})$"
_TRUTHS: Final = {"yes": "1", "no": "0", "true": "1", "false": "0"}


def class_labels(values: pl.Series) -> pl.Series:
    """Return the classes of a column of strings; null where the label is missing."""
    known = _written(values)
    return known.replace(_spellings(known))


def folded_spellings(values: pl.Series) -> tuple[tuple[str, str, int], ...]:
    """Return the values that differ from their class in spelling or as numbers: value, class, number of rows."""
    both = pl.DataFrame({"value": values, "label": class_labels(values)}).filter(pl.col("value") != pl.col("label"))
    return tuple(both.group_by("value", "label").len().sort("len", "value", descending=[True, False]).iter_rows())


def _written(values: pl.Series) -> pl.Series:
    """Return the classes as written; null where the label is missing, and equal numbers alike."""
    words = [*MISSING_WORDS, *_INFINITE]
    known = values.replace([*_MACHINE, *words], None)
    numbers = known.drop_nulls().cast(pl.Float64, strict=False)
    if numbers.is_empty() or numbers.has_nulls():
        keys = _key(values)
        single = [word for word in words if (keys == word.lower()).sum() == 1]
        known = values.replace([*_MACHINE, *single], None)
    written: dict[Decimal, str] = {}
    same = {
        text: written.setdefault(Decimal(text), text)
        for text in known.drop_nulls().unique(maintain_order=True)
        if _NUMBER.fullmatch(text)
    }
    return known.replace(same)


def _spellings(written: pl.Series) -> dict[str, str]:
    """Return the most frequent spelling for each of the others."""
    counts = written.drop_nulls().alias("spelling").value_counts()
    first = counts.sort("count", "spelling", descending=[True, False])  # the order of rows has no effect
    first = first.with_columns(key=_key(first["spelling"])).with_columns(label=pl.first("spelling").over("key"))
    return dict(first.filter(pl.col("spelling") != pl.col("label")).select("spelling", "label").iter_rows())


def _key(values: pl.Series) -> pl.Series:
    """Return labels without the differences of case and blanks, and of characters that look the same or are unseen."""
    seen = values.str.normalize("NFC").str.replace_all(r"\p{Cf}", "")
    return seen.str.strip_chars().str.replace_all(r"\s+", " ").str.to_lowercase()


def scores(values: pl.Series) -> pl.Series:
    """Return the scores of a column of strings, as strings; null where the score is missing."""
    known = values.replace([*_MACHINE, *MISSING_WORDS], None)
    lower = known.str.to_lowercase()
    if lower.drop_nulls().is_in(list(_TRUTHS)).all():
        return lower.replace(_TRUTHS)
    if known.str.contains(_DECIMAL_COMMA).all() and not known.str.contains(_THOUSANDS).all():
        return known.str.replace(",", ".", literal=True)
    return known


def decimal_comma(values: pl.Series) -> str:
    """Return the first score whose comma is read as a decimal comma; empty if there is none."""
    changed = values.filter(values.str.contains(",", literal=True) & (scores(values) != values))
    return str(changed[0]) if len(changed) else ""


def non_number(values: pl.Series) -> str | None:
    """Return the first score that is not a number; None if all are numbers."""
    known = scores(values).drop_nulls()
    return next(iter(known.filter(known.cast(pl.Float64, strict=False).is_null())), None)


def words_as_classes(values: pl.Series) -> tuple[tuple[str, int], ...]:
    """Return the words for a missing value that are classes of the column, and the number of their rows."""
    counts = class_labels(values).value_counts().sort(values.name)
    return tuple((word, count) for word, count in counts.iter_rows() if word in (*MISSING_WORDS, *_INFINITE))
