"""The data sets that are known by name: where they are, what is in them, whose they are."""

from typing import Final

from pydantic import BaseModel, ConfigDict, Field

_SNLI = "Bowman et al., 2015. A large annotated corpus for learning natural language inference. EMNLP."
_MULTINLI = "Williams et al., 2018. A broad-coverage challenge corpus for sentence understanding. NAACL."
_STS = "Agirre et al., SemEval-{year} task on semantic textual similarity."
_OANC = "OANC terms; fiction parts CC BY 3.0 and CC BY-SA 3.0"
_DEV = {"train": "train", "dev": "validation", "test": "test"}


class Dataset(BaseModel):
    """A declared data set. On a mirror it is the folder `<name>` with `<split>.parquet` in it."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    name: str
    """How sources and mirrors call it."""
    licence: str
    """As stated upstream."""
    citation: str
    """Whom to cite."""
    lang: str = "en"
    """ISO 639-1 code of its texts."""
    splits: dict[str, str] = Field(min_length=1)
    """Split → the Hub's name for it."""
    hub_id: str | None = None
    """Where it is on the Hub; None for a set that only mirrors hold."""
    hub_config: str | None = None
    """Which of the Hub's configurations."""
    revision: str | None = Field(None, pattern=r"^[0-9a-f]{40}$")
    """The Hub commit that is read."""
    texts: tuple[str, ...] = ()
    """Columns of text; by the known shapes if empty."""
    score_range: tuple[float, float] | None = None
    """Smallest and largest gold score of an STS set."""


def _sts(year: int, revision: str) -> Dataset:
    return Dataset(
        name=f"sts{year % 100}",
        licence="scores CC BY-SA 4.0; each text part has terms of its own",
        citation=_STS.format(year=year),
        splits={"test": "test"},
        hub_id=f"mteb/sts{year % 100}-sts",
        revision=revision,
        texts=("sentence1", "sentence2"),
        score_range=(0, 5),
    )


def _transfer(name: str, citation: str, *splits: str, texts: tuple[str, ...] = ("text",)) -> Dataset:
    """A set of SentEval; on no Hub repository under a commit that is known to hold its rows."""
    return Dataset(
        name=name,
        licence="none stated; research data",
        citation=citation,
        splits={split: split for split in splits},
        texts=texts,
    )


_SST: Final = (
    "Socher et al., 2013. Recursive deep models for semantic compositionality over a sentiment treebank. EMNLP."
)

_ALL: Final = (
    Dataset(
        name="snli",
        licence="CC BY-SA 4.0",
        citation=_SNLI,
        splits=_DEV,
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
        # Other revisions hold other row counts under the same configuration names.
        revision="d482672c8e74ce18da116f430137434ba2e52fab",
    ),
    Dataset(
        name="snli_train_part",
        licence="CC BY-SA 4.0",
        citation=_SNLI,
        splits={"pairs": "pairs", "triplets": "triplets"},
    ),
    Dataset(name="snli_tok", licence="CC BY-SA 4.0", citation=_SNLI, splits={"dev": "dev", "test": "test"}),
    Dataset(
        name="multinli_sample",
        licence=_OANC,
        citation=_MULTINLI,
        splits={"raw_6k": "raw_6k", "val_5k": "val_5k", "train_20k": "train_20k"},
    ),
    Dataset(
        name="xnli_en",
        licence="CC BY-NC 4.0",
        citation="Conneau et al., 2018. XNLI: Evaluating cross-lingual sentence representations. EMNLP.",
        splits={"dev": "dev", "test": "test"},
    ),
    Dataset(
        name="stsb",
        licence="scores CC BY-SA 4.0; each text part has terms of its own",
        citation="Cer et al., 2017. SemEval-2017 task 1: Semantic textual similarity. SemEval.",
        splits=_DEV,
        hub_id="mteb/stsbenchmark-sts",
        revision="b0fddb56ed78048fa8b90373c8a3cfc37b684831",
        texts=("sentence1", "sentence2"),
        score_range=(0, 5),
    ),
    _sts(2012, "a0d554a64d88156834ff5ae9920b964011b16384"),
    _sts(2013, "7e90230a92c190f1bf69ae9002b8cea547a64cca"),
    _sts(2014, "6031580fec1f6af667f0bd2da0a551cf4f0b2375"),
    _sts(2015, "ae752c7c21bf194d8b67fd573edf7ae58183cbe3"),
    _sts(2016, "4d8694f8f0e0100860b497b999b3dbed754a0513"),
    Dataset(
        name="sickr",
        licence="CC BY-NC-SA 3.0",
        citation="Marelli et al., 2014. A SICK cure for the evaluation of compositional semantic models. LREC.",
        splits={"test": "test"},
        hub_id="mteb/sickr-sts",
        revision="20a6d6f312dd54037fe07a32d58e5e168867909d",
        texts=("sentence1", "sentence2"),
        score_range=(1, 5),
    ),
    _transfer("mr", "Pang and Lee, 2005. Seeing stars. ACL.", "all"),
    _transfer("cr", "Hu and Liu, 2004. Mining and summarizing customer reviews. KDD.", "all"),
    _transfer("subj", "Pang and Lee, 2004. A sentimental education. ACL.", "all"),
    _transfer("mpqa", "Wiebe et al., 2005. Annotating expressions of opinions and emotions in language. LREC.", "all"),
    _transfer("sst2", _SST, "train", "dev", "test"),
    _transfer("sst5", _SST, "train", "dev", "test"),
    _transfer("trec", "Li and Roth, 2002. Learning question classifiers. COLING.", "train", "test"),
    _transfer(
        "mrpc",
        "Dolan et al., 2004. Unsupervised construction of large paraphrase corpora. COLING.",
        "train",
        "test",
        texts=("sentence1", "sentence2"),
    ),
)

DATASETS: Final[dict[str, Dataset]] = {dataset.name: dataset for dataset in _ALL}
