"""What the signature of a figure says of its data, its vectors and the installed packages."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import polars as pl

from models.evaluation.signature import rows_digest, signature
from tasks.corpus.evaluation_sets import rows_of
from tasks.embedding.vectors import versions_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tasks.corpus.evaluation_sets import EvaluationSet

_WHOLE = "all"  # the subset of a figure over all of them


def signed(
    figures: pl.DataFrame, data: Mapping[tuple[str, str], str], made: Mapping[str, object], **by: object
) -> pl.DataFrame:
    """Figures with the column `signature`.

    Args:
        figures: rows with dataset, subset, split, metric and protocol.
        data: data set and split of the rows → digest of what was scored, as `digests`.
        made: fields that say how the vectors were made.
        by: fields of the kind: what a figure is computed by.
    """
    version = versions_of("bsl-pipeline")["bsl-pipeline"]
    lines = [
        signature(
            {
                "set": "/".join(part for part in (row["dataset"], row["split"], row["subset"]) if part != _WHOLE),
                "metric": row["metric"],
                "protocol": row["protocol"],
                **by,
                "data": data[row["dataset"], row["split"]],
                **made,
                "bsl": version,
            }
        )
        for row in figures.iter_rows(named=True)
    ]
    return figures.with_columns(signature=pl.Series(lines, dtype=pl.String))


def digests(figures: pl.DataFrame, sets: Sequence[EvaluationSet]) -> dict[tuple[str, str], str]:
    """Data set and split of figures → digest of the set behind them.

    Two splits of one data set may be two sets; a split that names no rows of its own stands for the whole set.
    """
    places = figures.select("dataset", "split").unique(maintain_order=True).rows()
    return {(dataset, split): digest_of(_behind(dataset, split, sets)) for dataset, split in places}


@lru_cache(maxsize=64)
def digest_of(wanted: EvaluationSet) -> str:
    """Digest of all rows of a set, split by split.

    Raises:
        SourceError: as `rows_of`.
    """
    return rows_digest((split, rows.iter_rows()) for split, rows in rows_of(wanted).items())


def _behind(dataset: str, split: str, sets: Sequence[EvaluationSet]) -> EvaluationSet:
    own = [wanted for wanted in sets if wanted.dataset == dataset]
    return next((wanted for wanted in own if split in rows_of(wanted)), own[0])
