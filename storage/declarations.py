"""The data sets that are known by name: where they are, what is in them, whose they are."""

from typing import Final

from storage.declared.afs import AFS_SETS
from storage.declared.dataset import Dataset
from storage.declared.nli import NLI
from storage.declared.sts import STS
from storage.declared.transfer import TRANSFER

DATASETS: Final[dict[str, Dataset]] = {dataset.name: dataset for dataset in (*NLI, *STS, *TRANSFER, *AFS_SETS)}
