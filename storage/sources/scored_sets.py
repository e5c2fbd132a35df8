"""Read declared datasets and check their row counts: scored pairs, and SentEval's texts with class numbers.

Some copies on the Hub mix the parts of a task. Digests of the task's original files separate them:
- STS 2012 to 2016: the Hub has the pairs of all subsets in one list, but means over subsets (as in SentEval and
  SimCSE) need the subset. `subsets.parquet` has a digest and the subset of every pair.
- SICK-R: the Hub has train, trial and test in one list; `sick_test.parquet` has a digest of every test pair.

SentEval's folds depend on the order of rows. GLUE's copy of MRPC has another order, but also the original row numbers.
"""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl

from bsl.storage.datasets.registry import DATASETS, require_rows
from bsl.storage.errors import SourceError
from bsl.storage.readers.benchmarks.senteval import TRANSFER_SETS
from bsl.storage.readers.columns import Columns
from bsl.storage.readers.read_report import ReadReport
from bsl.storage.sources.read import read_columns, read_scored_pairs, source_columns

if TYPE_CHECKING:
    from bsl.storage.sources.sources import ResolvedSource


logger = logging.getLogger(__name__)

CLASS: Final = "class"
TABLE: Final = Path(__file__).with_name("subsets.parquet")
SICK_TEST: Final = Path(__file__).with_name("sick_test.parquet")
_NO_LETTER: Final = r"[^\p{L}\p{N}]"  # removed, so that tokenised and raw text, straight and curly quotes are equal


def read_declared_pairs(dataset: str, split: str, source: ResolvedSource) -> pl.DataFrame:
    """Return a declared set's pairs in order: `subset` ("" if unknown), `sentence1`, `sentence2`, `score`.

    Raises:
        SourceError: a record cannot be read, a column or score differs from the declaration, or the row count differs
            from the papers'.
    """
    declared = DATASETS[dataset]
    low, high = declared.score_range or (0.0, 5.0)
    pairs = read_scored_pairs(source, ReadReport(f"{dataset} {split}"), low, high)
    if dataset == "sickr" and pairs.height != declared.rows[split]:
        pairs = sick_test(pairs)
    require_rows(dataset, split, pairs.height)
    if declared.divided and (pairs["subset"] == "").all():
        return with_subsets(declared.folder or dataset, pairs)
    return pairs


def with_subsets(dataset: str, pairs: pl.DataFrame) -> pl.DataFrame:
    """Add the subsets of a task (`sts12`); if a pair is not in it, log a warning and return the pairs unchanged."""
    known = pl.read_parquet(TABLE).filter(dataset=dataset).select("digest", pl.col("subset").cast(pl.String))
    found = digests(pairs).to_frame().join(known, on="digest", how="left", maintain_order="left")["subset"]
    if found.has_nulls():
        logger.warning(
            "%s: %d of %d pairs are not in the task's files, so subsets and means over subsets are not available",
            dataset,
            found.null_count(),
            len(found),
        )
        return pairs
    return pairs.with_columns(found)


def sick_test(pairs: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs of SICK's test set, in the order of the copy; all pairs if some test pairs are missing.

    Ten test pairs are also in train or trial, with the same score; their first copy is used.
    """
    known = pl.read_parquet(SICK_TEST)["digest"]
    test = pairs.with_columns(digests(pairs, scored=True)).filter(pl.col("digest").is_in(known.implode()))
    chosen = test.unique("digest", keep="first", maintain_order=True)
    return chosen.drop("digest") if chosen.height == len(known) else pairs


def digests(pairs: pl.DataFrame, *, scored: bool = False) -> pl.Series:
    """Return a 64-bit digest of each pair (`digest`, UInt64), over the letters and digits of both sentences.

    With `scored`, the score, rounded to two places, is part of the digest.
    """
    sides = [pl.col(side).str.to_lowercase().str.replace_all(_NO_LETTER, "") for side in ("sentence1", "sentence2")]
    sides += [pl.col("score").round(2).cast(pl.String)] if scored else []
    texts = pairs.select(pl.concat_str(sides, separator="\t")).to_series()
    values = [int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) for text in texts]
    return pl.Series("digest", values, dtype=pl.UInt64)


def read_transfer_table(name: str, split: str, source: ResolvedSource) -> pl.DataFrame:
    """Return a split of a transfer set: texts ("" for a blank line of SentEval's file), and `class` (Int64).

    Raises:
        SourceError: a column is missing, a line has another format, a label is unknown, or the row count differs from
            the papers'.
    """
    report = ReadReport(f"{name} {split}")
    label, order = TRANSFER_SETS[name].label, DATASETS[name].order
    sort_by = (order,) if order in source_columns(source) else ()
    frames = list(read_columns(source, Columns(DATASETS[name].texts, (label, *sort_by)), report))
    table = pl.concat(frames).sort(sort_by) if sort_by else pl.concat(frames)
    require_rows(name, split, table.height)
    classes, spelled = TRANSFER_SETS[name].classes, table[label].cast(pl.String)
    number = spelled.replace_strict(list(classes), list(range(len(classes))), default=None, return_dtype=pl.Int64)
    numbered = table.select(*DATASETS[name].texts, number.alias(CLASS))
    unknown = numbered[CLASS].is_null().arg_true()
    if len(unknown):
        row = int(unknown[0])
        raise SourceError(
            f"{name} {split}: row {row + 1} has the label {spelled[row]!r}, expected one of "
            f"{', '.join(classes)}. Correct it, or name the right column."
        )
    return numbered
