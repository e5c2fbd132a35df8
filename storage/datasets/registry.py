"""Registry of the datasets known by name, their suites, and the licences of models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bsl.storage.datasets.benchmarks import AFS_SETS, TRANSFER
from bsl.storage.datasets.declaration import TRAIN_DEV_TEST, Dataset
from bsl.storage.datasets.sts import STS
from bsl.storage.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterable


_SNLI = "Bowman et al., 2015. A large annotated corpus for learning natural language inference. EMNLP."
_MULTINLI = "Williams et al., 2018. A broad-coverage challenge corpus for sentence understanding. NAACL."
_OANC = "OANC terms; fiction parts CC BY 3.0 and CC BY-SA 3.0"

NLI: Final = (
    Dataset(
        name="snli",
        licence="CC BY-SA 4.0",
        citation=_SNLI,
        splits=TRAIN_DEV_TEST,
        hub_id="stanfordnlp/snli",
        revision="cdb5c3d5eed6ead6e5a341c8e56e669bb666725b",
    ),
    Dataset(
        name="multi_nli",
        licence=_OANC,
        citation=_MULTINLI,
        splits={"train": "train", "dev_matched": "validation_matched", "dev_mismatched": "validation_mismatched"},
        hub_id="nyu-mll/multi_nli",
        revision="da70db2af9d09693783c3320c4249840212ee221",
    ),
    Dataset(
        name="all-nli",
        licence=f"SNLI CC BY-SA 4.0, MultiNLI {_OANC}",
        citation=f"{_SNLI} {_MULTINLI}",
        splits={"train": "train", "dev": "dev", "test": "test"},
        hub_id="sentence-transformers/all-nli",
        hub_config="pair-class",
        # Other revisions have other row counts under the same configuration names.
        revision="d482672c8e74ce18da116f430137434ba2e52fab",
    ),
    Dataset(
        name="back_translated_nli",
        licence=f"not stated; made of SNLI (CC BY-SA 4.0) and MultiNLI ({_OANC})",
        citation="Zhang et al., 2021. Bootstrapped Unsupervised Sentence Representation Learning. ACL.",
        splits={"train": "train"},
        originals={"train": ("back_translated_nli/**/back_translated_nli.txt*",)},
        original_format="view-pairs",
        remedy=(
            "download the authors' back-translated corpus (linked from the README of KornWtp/ConGen on GitHub) and put "
            "back_translated_nli.txt or .txt.zip into the mirror's folder back_translated_nli/"
        ),
    ),
)


DATASETS: Final[dict[str, Dataset]] = {dataset.name: dataset for dataset in (*NLI, *STS, *TRANSFER, *AFS_SETS)}


def require_rows(dataset: str, split: str, rows: int) -> None:
    """Check that a split has the number of rows that papers report, if the number is declared.

    Raises:
        SourceError: states both numbers and where to get the right copy.
    """
    declared = DATASETS[dataset]
    expected = declared.rows.get(split, rows)
    if rows != expected:
        remedy = declared.remedy or "copy it again, or give your own set another name"
        raise SourceError(f"{dataset} {split} has {rows:,} rows, expected the {expected:,} that papers report", remedy)


def pairs_of(name: str) -> str:
    """Return the name of the dataset with the same pairs: the raw version of a tokenised one, else the name itself."""
    declared = DATASETS.get(name)
    return (declared and declared.folder) or name


def suites_of(datasets: Iterable[Dataset]) -> dict[str, tuple[Dataset, ...]]:
    """Return suite → datasets, in the given order."""
    members: dict[str, tuple[Dataset, ...]] = {}
    for dataset in datasets:
        for suite in dataset.suites:
            members[suite] = (*members.get(suite, ()), dataset)
    return members


ALL: Final = "all"
"""Name of all suites."""
OTHER_SETS: Final = (
    "stsb-supervised",
    "afs-10-fold",
    "afs-10-fold-disjoint",
    "afs-cross-topic",
    "stsb-cross-encoder",
    "afs-cross-encoder-10-fold",
    "afs-cross-encoder-10-fold-disjoint",
    "afs-cross-encoder-cross-topic",
)
"""Names of evaluations that are no dataset: protocols that fine-tune. Commands check names without the kinds of
evaluation (`bsl.tasks.evaluation.kinds`), whose import takes seconds."""


def headings_of(suite: str) -> dict[str, str]:
    """Return dataset → heading for a suite's datasets with a column in the papers' tables, in the papers' order."""
    members = suites_of(DATASETS.values()).get(suite, ())
    return {dataset.name: dataset.heading for dataset in members if dataset.heading}


MODEL_LICENCES: Final = {
    "FacebookAI/roberta-base": "MIT",
    "FacebookAI/xlm-roberta-base": "MIT",
    "google-bert/bert-base-multilingual-cased": "Apache-2.0",
    "google-bert/bert-base-uncased": "Apache-2.0",
    "sentence-transformers/LaBSE": "Apache-2.0",
}
