"""SentEval's transfer sets, with their numbers of rows; readers/benchmarks/senteval.py reads their files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from storage.datasets.declaration import SENTEVAL, Dataset
from storage.readers.benchmarks.senteval import TRANSFER_SETS

if TYPE_CHECKING:
    from storage.datasets.declaration import HubArchive

_REMEDY: Final = (
    f"unpack SimCSE's {SENTEVAL.file} ({SENTEVAL.hub_id} on the Hub) into the mirror, and delete a table of the set "
    "that stands there, which would be read first"
)


def _transfer(
    name: str, heading: str, citation: str, rows: dict[str, int], blank: str = "", archive: HubArchive | None = SENTEVAL
) -> Dataset:
    """A set of SentEval, from its own files."""
    files = TRANSFER_SETS[name]
    note = f"{blank} of its lines are blank, which many copies drop and SentEval counts; " if blank else ""
    return Dataset(
        name=name,
        licence="none stated; research data",
        citation=citation,
        splits={split: split for split in rows},
        texts=files.texts,
        rows=rows,
        heading=heading,
        suites=("senteval",),
        originals={split: tuple(path for path, _ in parts) for split, parts in files.files.items()},
        original_format="senteval",
        archive=archive,
        remedy=note + _REMEDY,
    )


_SST: Final = (
    "Socher et al., 2013. Recursive deep models for semantic compositionality over a sentiment treebank. EMNLP."
)
_MPQA: Final = "Wiebe et al., 2005. Annotating expressions of opinions and emotions in language. LREC."
_CR: Final = "Hu and Liu, 2004. Mining and summarizing customer reviews. KDD."
_TREC: Final = "Li and Roth, 2002. Learning question classifiers. COLING."
_MRPC: Final = "Dolan et al., 2004. Unsupervised construction of large paraphrase corpora. COLING."

TRANSFER: Final = (
    _transfer("mr", "MR", "Pang and Lee, 2005. Seeing stars. ACL.", {"all": 10_662}),
    _transfer("cr", "CR", _CR, {"all": 3775}, blank="four"),
    _transfer("subj", "SUBJ", "Pang and Lee, 2004. A sentimental education. ACL.", {"all": 10_000}),
    _transfer("mpqa", "MPQA", _MPQA, {"all": 10_606}, blank="three"),
    _transfer("sst2", "SST", _SST, {"train": 67_349, "dev": 872, "test": 1821}),
    # In SCL's table alone; whether the archive has it could not be seen.
    _transfer("sst5", "", _SST, {"train": 8544, "dev": 1101, "test": 2210}, archive=None),
    _transfer("trec", "TREC", _TREC, {"train": 5452, "test": 500}),
    # GLUE's tables were made of SentEval's very files: 408 rows of the first are its `validation`, and `idx` says where
    # in it each row stood.
    _transfer("mrpc", "MRPC", _MRPC, {"train": 4076, "test": 1725}, archive=None).model_copy(
        update={
            "hub_id": "nyu-mll/glue",
            "hub_config": "mrpc",
            "revision": "bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c",
            "splits": {"train": "train+validation", "test": "test"},
            "order": "idx",
        }
    ),
)
