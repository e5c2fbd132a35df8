"""A figure's signature: one line that says how it came about, to be pasted beside it and read back by a program.

As sacreBLEU's (Post, 2018. A call for clarity in reporting BLEU scores. WMT.), fields are `name:value`, parted by bars:

    set:sts12/test|metric:spearman|protocol:all|by:cosine|data:0123456789ab|vectors:encoder|pool:mean|len:64|…|torch:2.13.0

Two figures whose signatures differ in no field but `vectors` were measured alike.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from models.errors import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


BAR: Final = "|"
DIGITS: Final = 12  # hexadecimal: 48 bits, enough to tell any two copies of a data set apart
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_SPELLED: Final = {True: "yes", False: "no", None: "none"}


def signature(fields: Mapping[str, object]) -> str:
    """The line, its fields in the order in which they are given; true, false and None are `yes`, `no` and `none`.

    Raises:
        EvaluationError: a field's name is no lower-case word, or its value is empty or holds a bar or a line's end.
    """
    line = BAR.join(f"{name}:{_spelled(value)}" for name, value in fields.items())
    parse_signature(line)
    return line


def parse_signature(line: str) -> dict[str, str]:
    """The fields of a line, in their order.

    Raises:
        EvaluationError: the line is no signature; the message names its first bad field.
    """
    fields: dict[str, str] = {}
    for part in line.split(BAR):
        name, _, value = part.partition(":")
        if not _NAME.fullmatch(name) or not value or value.splitlines() != [value] or name in fields:
            raise EvaluationError(
                f"signature field {part!r} in {line!r}, expected `name:value`, each name once and parted by {BAR!r}; "
                "copy the whole line again, or correct what made it"
            )
        fields[name] = value
    return fields


def joint_signature(lines: Sequence[str]) -> str:
    """One line for figures that stand in one row of a table: a field's values, parted by commas where they differ.

    A field that only some of the figures have is `none` for the others.

    Raises:
        EvaluationError: there is no line, or one is no signature.
    """
    if not lines:
        raise EvaluationError("no signatures to join, expected one for each figure of a row; give the row's figures")
    parsed = [parse_signature(line) for line in lines]
    names = dict.fromkeys(name for fields in parsed for name in fields)
    values = {name: dict.fromkeys(fields.get(name, _SPELLED[None]) for fields in parsed) for name in names}
    # Sets and their digests answer each other by place, so that equal ones are not left out.
    aligned = {name: [fields[name] for fields in parsed] for name in ("set", "data") if len(values.get(name, ())) > 1}
    return signature({name: ",".join(aligned.get(name, values[name])) for name in names})


def rows_digest(tables: Iterable[tuple[str, Iterable[tuple[object, ...]]]]) -> str:
    """The first digits of a sha256 over rows as they are scored: equal for equal text from whatever file or Hub.

    Args:
        tables: name of a split and its rows, in their order.
    """
    digest = hashlib.sha256()
    for name, rows in tables:
        digest.update(f"{name}\x1e".encode())
        for row in rows:
            digest.update(("\x1f".join(map(str, row)) + "\x1e").encode())
    return digest.hexdigest()[:DIGITS]


def _spelled(value: object) -> str:
    return _SPELLED[value] if value is None or isinstance(value, bool) else str(value)


WHOLE: Final = "all"
"""Subset of figures over a whole set."""
PLACE: Final = ("dataset", "split", "metric", "protocol")
_ONE_A_SET: Final = pl.col("subset").is_in([WHOLE, "mean"]) & ~pl.col("protocol").is_in(["mean", "wmean"])
PRINTED: Final = _ONE_A_SET & ((pl.col("metric") != "pearson") | (pl.col("dataset") == "afs"))
"""The figures that pages print; Pearson is reported beside Spearman on AFS alone."""


@dataclass(frozen=True)
class ScoreRow:
    """One figure, with its meaning and its uncertainty; value and interval in [0, 1], of correlations in [-1, 1]."""

    dataset: str
    subset: str
    split: str
    metric: str
    protocol: str
    value: float
    n: int
    ci_low: float
    ci_high: float


def signed(value: float | None, low: float | None, high: float | None) -> str:
    """Return `value × 100 [low, high]`, each with its sign; without an interval the value alone, of None nothing."""
    if value is None:
        return ""
    ends = "" if low is None or high is None else f" [{100 * low:+.2f}, {100 * high:+.2f}]"
    return f"{100 * value:+.2f}{ends}"
