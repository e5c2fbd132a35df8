"""Signature of a score: one line with everything that the score depends on, for people and programs to read.

As in sacreBLEU (Post, 2018. A call for clarity in reporting BLEU scores. WMT.), fields are `name:value` between bars:

    set:sts12/test|metric:spearman|protocol:all|by:cosine|data:0123456789ab|vectors:encoder|pool:mean|len:64|…|torch:2.13.0

Two scores whose signatures differ only in the field `vectors` were measured in the same way.
"""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from bsl.models.errors import EvaluationError
from bsl.storage.filesystem.control_characters import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


BAR: Final = "|"
DIGITS: Final = 12  # hexadecimal: 48 bits, enough to distinguish copies of a dataset
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_SPELLED: Final = {True: "yes", False: "no", None: "none"}


def signature(fields: Mapping[str, object]) -> str:
    r"""Return the signature line of fields, in their order; true, false and None become `yes`, `no` and `none`.

    A line feed in a value, such as that of the prompt `Instruct: …\nQuery: `, is written as an escape.

    Raises:
        EvaluationError: A field's name is not a lower-case word, or its value is empty.
    """
    line = BAR.join(f"{name}:{_spelled(value)}" for name, value in fields.items())
    parse_signature(line)
    return line


def parse_signature(line: str) -> dict[str, str]:
    """Parse a signature line into its fields, in their order.

    Raises:
        EvaluationError: The line is not a signature; the message names the first bad field.
    """
    fields: dict[str, str] = {}
    for part in line.split(BAR):
        name, _, value = part.partition(":")
        if not _NAME.fullmatch(name) or not value or value.splitlines() != [value] or name in fields:
            raise EvaluationError(
                f"signature {line!r}: invalid field {part!r}, expected `name:value` fields with different names, "
                f"separated by {BAR!r}. Copy the complete line again."
            )
        fields[name] = value
    return fields


def joint_signature(lines: Sequence[str]) -> str:
    """Join the signatures of the scores in one table row: different values of a field are separated by commas.

    A field that only some of the scores have is `none` for the others.

    Raises:
        EvaluationError: There is no line, or a line is not a signature.
    """
    if not lines:
        raise EvaluationError(
            "no signatures to join, expected one for each score of a row. Give the scores of the row."
        )
    parsed = [parse_signature(line) for line in lines]
    names = dict.fromkeys(name for fields in parsed for name in fields)
    values = {name: dict.fromkeys(fields.get(name, _SPELLED[None]) for fields in parsed) for name in names}
    # The n-th digest belongs to the n-th set, so equal values are not merged in these two fields.
    aligned = {name: [fields[name] for fields in parsed] for name in ("set", "data") if len(values.get(name, ())) > 1}
    return signature({name: ",".join(aligned.get(name, values[name])) for name in names})


def rows_digest(tables: Iterable[tuple[str, Iterable[tuple[object, ...]]]]) -> str:
    """Return the first digits of a sha256 over scored rows; equal text gives equal digits, whatever its source.

    Args:
        tables: Names of splits and their rows, in order.
    """
    digest = hashlib.sha256()
    for name, rows in tables:
        digest.update(f"{name}\x1e".encode())
        for row in rows:
            digest.update(("\x1f".join(map(str, row)) + "\x1e").encode())
    return digest.hexdigest()[:DIGITS]


def _spelled(value: object) -> str:
    if value is None or isinstance(value, bool):
        return _SPELLED[value]
    # In a path, name or prompt that the user gave.
    return visible(str(value)).replace("\n", r"\n").replace(BAR, "/")


WHOLE: Final = "all"
"""Value of `subset` for scores over a complete set."""
PLACE: Final = ("dataset", "split", "metric", "protocol")
_ONE_A_SET: Final = pl.col("subset").is_in([WHOLE, "mean"]) & ~pl.col("protocol").is_in(["mean", "wmean"])
PRINTED: Final = _ONE_A_SET & ((pl.col("metric") != "pearson") | (pl.col("dataset") == "afs"))
"""Filter of the scores that pages print; Pearson only for AFS, in addition to Spearman."""


@dataclass(frozen=True)
class ScoreRow:
    """One score and its confidence interval, both in [0, 1], for correlations in [-1, 1]."""

    dataset: str
    subset: str
    split: str
    metric: str
    protocol: str
    value: float
    n: int
    ci_low: float
    ci_high: float


def p_text(value: float, smallest: float = 0.0) -> str:
    """Format a p-value with three digits, or as `<0.001`.

    The smallest p that the bootstrap draws can show (`sweep.smallest_p`; 0 if unknown) is a bound: it is rounded up and
    printed as `≤ 0.002`.
    """
    if smallest and value <= smallest * (1 + 1e-9):
        unit = 10.0 ** math.floor(math.log10(smallest))
        return f"≤ {math.ceil(smallest / unit) * unit:.1g}"
    return "<0.001" if value < 0.0005 else f"{value:.3f}"


def with_sign(value: float | None, low: float | None, high: float | None) -> str:
    """Format `value × 100 [low, high]` with signs; without an interval only the value, for None an empty string."""
    if value is None:
        return ""
    ends = "" if low is None or high is None else f" [{100 * low:+.2f}, {100 * high:+.2f}]"
    return f"{100 * value:+.2f}{ends}"
