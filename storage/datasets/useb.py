"""The four domain sets of USEB (Wang et al., 2021), in the files of its evaluation archive."""

from __future__ import annotations

from typing import Final

from storage.datasets.declaration import Dataset

_ARCHIVE: Final = "https://public.ukp.informatik.tu-darmstadt.de/kwang/unsupse-benchmark/tsdae-evaluation/data-eval.zip"
_REMEDY: Final = f"download {_ARCHIVE} and unpack it in the mirror, so that its folder data-eval stands there"
_USEB: Final = "Split and protocol of USEB: Wang, Reimers and Gurevych, 2021. TSDAE. Findings of EMNLP."
_STACK_EXCHANGE: Final = "CC BY-SA, as all of Stack Exchange"
_UNSAID: Final = "not stated; ask its authors"


def _useb(name: str, heading: str, licence: str, citation: str, files: dict[str, tuple[str, ...]]) -> Dataset:
    return Dataset(
        name=name,
        licence=licence,
        citation=f"{citation} {_USEB}",
        splits={split: split for split in files},
        heading=heading,
        suites=("useb",),
        originals={split: tuple(f"data-eval/{name}/{file}" for file in parts) for split, parts in files.items()},
        original_format="useb",
        remedy=_REMEDY,
    )


USEB: Final = (
    _useb(
        "askubuntu",
        "AskU.",
        _STACK_EXCHANGE,
        "Lei et al., 2016. Semi-supervised question retrieval with gated convolutions. NAACL.",
        {"dev": ("text_tokenized.txt", "dev.txt"), "test": ("text_tokenized.txt", "test.txt")},
    ),
    _useb(
        "cqadupstack",
        "CQADup.",
        _STACK_EXCHANGE,
        "Hoogeveen, Verspoor and Baldwin, 2015. CQADupStack: a benchmark data set for community question-answering "
        "research. ADCS.",
        dict.fromkeys(("dev", "test"), ("corpus.json", "retrieval_split.json")),
    ),
    _useb(
        "twitterpara",
        "TwitterP.",
        _UNSAID,
        "Lan et al., 2017. A continuously growing dataset of sentential paraphrases. EMNLP. Xu et al., 2015. "
        "SemEval-2015 task 1: paraphrase and semantic similarity in Twitter. SemEval.",
        {"test": ("Twitter_URL_Corpus_test.txt", "test.data")},
    ),
    _useb(
        "scidocs",
        "SciD.",
        _UNSAID,
        "Cohan et al., 2020. SPECTER: document-level representation learning using citation-informed transformers. "
        "ACL.",
        dict.fromkeys(("dev", "test"), ("data.json",)),
    ),
)
"""In the order of USEB's table."""
