"""SentEval's transfer sets; storage/transfer.py says how their files spell a row."""

from __future__ import annotations

from typing import Final

from storage.declared.dataset import Dataset


def _transfer(name: str, heading: str, citation: str, *splits: str, texts: tuple[str, ...] = ("text",)) -> Dataset:
    """A set of SentEval; on no Hub repository under a commit that is known to hold its rows."""
    return Dataset(
        name=name,
        licence="none stated; research data",
        citation=citation,
        splits={split: split for split in splits},
        texts=texts,
        heading=heading,
        suites=("senteval",),
    )


_SST: Final = (
    "Socher et al., 2013. Recursive deep models for semantic compositionality over a sentiment treebank. EMNLP."
)
_MPQA: Final = "Wiebe et al., 2005. Annotating expressions of opinions and emotions in language. LREC."

TRANSFER: Final = (
    _transfer("mr", "MR", "Pang and Lee, 2005. Seeing stars. ACL.", "all"),
    _transfer("cr", "CR", "Hu and Liu, 2004. Mining and summarizing customer reviews. KDD.", "all"),
    _transfer("subj", "SUBJ", "Pang and Lee, 2004. A sentimental education. ACL.", "all"),
    _transfer("mpqa", "MPQA", _MPQA, "all"),
    _transfer("sst2", "SST", _SST, "train", "dev", "test"),
    _transfer("sst5", "", _SST, "train", "dev", "test"),  # in SentEval, but in no table of the papers
    _transfer("trec", "TREC", "Li and Roth, 2002. Learning question classifiers. COLING.", "train", "test"),
    _transfer(
        "mrpc",
        "MRPC",
        "Dolan et al., 2004. Unsupervised construction of large paraphrase corpora. COLING.",
        "train",
        "test",
        texts=("sentence1", "sentence2"),
    ),
)
