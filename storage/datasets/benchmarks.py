"""Declare benchmarks other than STS: SentEval's transfer sets and AFS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bsl.storage.datasets.declaration import SENTEVAL, TRAIN_DEV_TEST, Dataset
from bsl.storage.readers.benchmarks.afs import TOPICS, topic_file
from bsl.storage.readers.benchmarks.senteval import TRANSFER_SETS

if TYPE_CHECKING:
    from bsl.storage.datasets.declaration import HubArchive


_SENTEVAL_REMEDY: Final = (
    f"unpack SimCSE's {SENTEVAL.file} ({SENTEVAL.hub_id} on the Hub) into the mirror, and delete any older table of "
    "the set there, because that table would be read first"
)


def _transfer(
    name: str, heading: str, citation: str, rows: dict[str, int], blank: str = "", archive: HubArchive | None = SENTEVAL
) -> Dataset:
    """Declare a set of SentEval, read from its original files."""
    files = TRANSFER_SETS[name]
    note = f"SentEval counts its {blank} blank lines, which many copies drop; " if blank else ""
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
        remedy=note + _SENTEVAL_REMEDY,
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
    # SetFit's JSON lines were made from the files that SentEval's script fetches: the same rows in the same order.
    # Only SCL's paper has SST-5; whether the archive contains it is unknown.
    _transfer("sst5", "", _SST, {"train": 8544, "dev": 1101, "test": 2210}, archive=None).model_copy(
        update={
            "hub_id": "SetFit/sst5",
            "revision": "e51bdcd8cd3a30da231967c1a249ba59361279a3",
            "splits": TRAIN_DEV_TEST,
            "remedy": "remove this copy; the Hub's SetFit/sst5 is then read",
        }
    ),
    _transfer("trec", "TREC", _TREC, {"train": 5452, "test": 500}),
    # GLUE's tables were made from SentEval's files: 408 rows of the train file are GLUE's `validation`, and `idx`
    # is each row's position in the original file.
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


AFS_SETS: Final = (
    Dataset(
        name="afs",
        licence="not stated; ask its authors",
        citation="Misra et al., 2016. Measuring the similarity of sentential arguments in dialogue. SIGDIAL.",
        splits={"all": "all"},
        heading="AFS",
        suites=("afs",),
        originals={"all": tuple(topic_file("afs", topic) for topic in TOPICS)},
        original_format="afs",
        remedy="put the authors' ArgPairs_GC.csv, ArgPairs_GM.csv and ArgPairs_DP.csv into the mirror's folder afs/",
    ),
)
