"""Read semantic textual similarity in the tasks' own formats.

- `sts-task`: `STS.input.<subset>.txt` with two sentences per line, and `STS.gs.<subset>.txt` in the same folder with
  one score per line, blank if the pair was not annotated. SemEval 2012-2017 and SentEval's copies.
- `sts-benchmark`: `sts-<split>.csv`, tab-separated without quotes or header: genre, file, year, number, score, the two
  sentences, and on some lines their sources.
"""

from __future__ import annotations

import re
from typing import Final

import polars as pl

from bsl.storage.errors import SourceError
from bsl.storage.readers.blocks import read_text

COLUMNS: Final = ("subset", "sentence1", "sentence2", "score")
_INPUT, _GOLD = "STS.input.", "STS.gs."
_TRACK: Final = re.compile(r"^(track\w+|extended)\.")


def parts_of(path: str, kind: str | None) -> tuple[str, ...]:
    """Return all files that must be read for one path."""
    return (path, _gold_of(path)) if kind == "sts-task" else (path,)


def _gold_of(path: str) -> str:
    """Return the path of the scores for an `STS.input` file; other names are refused."""
    folder, slash, name = path.rpartition("/")
    if not name.startswith(_INPUT):
        raise SourceError(
            f"{path}: expected a file {_INPUT}<subset>.txt of a SemEval task. Correct `path` or `format`."
        )
    return f"{folder}{slash}{_GOLD}{name.removeprefix(_INPUT)}"


def read_task(path: str) -> pl.DataFrame:
    """Return the pairs of one `STS.input` file with their scores, as strings; "" for a missing score.

    Raises:
        SourceError: a file is missing or not UTF-8, a line has fewer than two fields, or the line counts differ.
    """
    texts, gold = _lines(path), _lines(_gold_of(path))
    if len(texts) != len(gold):
        raise SourceError(
            f"{path} has {len(texts)} lines and {_gold_of(path)} has {len(gold)}, expected one score per pair. Copy "
            "both again from the same distribution."
        )
    pairs = [_fields(path, line, text, 2) for line, text in enumerate(texts, start=1)]
    subset = _TRACK.sub("", path.rpartition("/")[2].removeprefix(_INPUT).removesuffix(".txt"))
    return _frame([(subset, one, two, score) for (one, two, *_), score in zip(pairs, gold, strict=True)])


def read_benchmark(path: str) -> pl.DataFrame:
    """Return the pairs of one STS benchmark file, as strings.

    Raises:
        SourceError: the file is missing or not UTF-8, or a line has fewer than seven fields.
    """
    rows = [_fields(path, line, text, 7) for line, text in enumerate(_lines(path), start=1)]
    return _frame([("", row[5], row[6], row[4]) for row in rows])


def _lines(path: str) -> list[str]:
    # Not splitlines(): sentences contain separators that it treats as line ends.
    return [line.removesuffix("\r") for line in read_text(path).removesuffix("\n").split("\n")]


def _fields(path: str, line: int, text: str, least: int) -> list[str]:
    fields = text.split("\t")
    if len(fields) < least or not all(fields[:least][-2:]):
        raise SourceError(
            f"{path}, line {line}: {len(fields)} fields ({text[:60]!r}), expected at least {least}, separated by tabs, "
            "with non-empty sentences. Copy the file again."
        )
    return fields


def _frame(rows: list[tuple[str, ...]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String), orient="row")
