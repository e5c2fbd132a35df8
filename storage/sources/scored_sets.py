"""Declared scored sets: read, and held against what their papers say of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from storage.datasets.registry import DATASETS, require_rows
from storage.readers.read_report import ReadReport
from storage.sources.read import read_scored_pairs
from storage.sources.subsets import sick_test, with_subsets

if TYPE_CHECKING:
    import polars as pl

    from storage.sources.sources import ResolvedSource


SICK: Final = "sickr"
"""The set of which the Hub has train and trial too."""


def read_declared_pairs(dataset: str, split: str, source: ResolvedSource) -> pl.DataFrame:
    """The pairs in their order: `subset`, even where a copy has none, `sentence1`, `sentence2`, `score`.

    Raises:
        SourceError: it cannot be read, a column or score is not as declared, or it is not as long as its papers say.
    """
    declared = DATASETS[dataset]
    low, high = declared.score_range or (0.0, 5.0)
    pairs = read_scored_pairs(source, ReadReport(f"{dataset} {split}"), low, high)
    if dataset == SICK and pairs.height != declared.rows[split]:
        pairs = sick_test(pairs)
    require_rows(dataset, split, pairs.height)
    if declared.divided and (pairs["subset"] == "").all():
        return with_subsets(declared.folder or dataset, pairs)
    return pairs
