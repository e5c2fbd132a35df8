"""The data sets that are known by name: where they are, what is in them, whose they are, which suites they make up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from storage.datasets.afs import AFS_SETS
from storage.datasets.clustering import CLUSTERING
from storage.datasets.nli import NLI
from storage.datasets.sts import STS
from storage.datasets.transfer import TRANSFER
from storage.datasets.useb import USEB
from storage.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from storage.datasets.declaration import Dataset

DATASETS: Final[dict[str, Dataset]] = {
    dataset.name: dataset for dataset in (*NLI, *STS, *TRANSFER, *AFS_SETS, *USEB, *CLUSTERING)
}


def require_rows(dataset: str, split: str, rows: int) -> None:
    """Check that a split has the rows that its papers count; one that declares none may have any.

    Raises:
        SourceError: with both numbers, and where the right copy is.
    """
    declared = DATASETS[dataset]
    expected = declared.rows.get(split, rows)
    if rows != expected:
        remedy = declared.remedy or "copy it again, or give a set of your own a name of its own"
        raise SourceError(
            f"{dataset} {split} holds {rows:,} rows, expected the {expected:,} that papers report; {remedy}"
        )


def suites_of(datasets: Iterable[Dataset]) -> dict[str, tuple[Dataset, ...]]:
    """Suite → those of the data sets that belong to it, in their order."""
    members: dict[str, tuple[Dataset, ...]] = {}
    for dataset in datasets:
        for suite in dataset.suites:
            members[suite] = (*members.get(suite, ()), dataset)
    return members


def headings_of(suite: str) -> dict[str, str]:
    """Data set → heading, of a suite's sets that have a column in the papers' tables, in the papers' order."""
    members = suites_of(DATASETS.values()).get(suite, ())
    return {dataset.name: dataset.heading for dataset in members if dataset.heading}
