"""SentEval's transfer sets: their columns, their classes in its order, and the files of its download script.

The class numbers decide the classifier's first weights, so their order is SentEval's: SUBJ counts objective as 1.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

Record = tuple[tuple[str, ...], str]
"""Texts and label of one line."""


@dataclass(frozen=True)
class TransferSet:
    """How one set spells its rows.

    Attributes:
        classes: label as it is spelled in a table, by class number.
        files: split to the original files, each with the label of all its lines ("" where a line names its own).
        parse: texts and label of a line of them, given the file's label.
        header: whether their first line names columns.
        texts: columns of a table that hold sentences.
        label: column of a table that holds the label.
    """

    classes: tuple[str, ...]
    files: dict[str, tuple[tuple[str, str], ...]]
    parse: Callable[[str, str], Record]
    header: bool = False
    texts: tuple[str, ...] = ("text",)
    label: str = "label"


def _whole(line: str, label: str) -> Record:
    return (line,), label


def _label_last(line: str, label: str) -> Record:  # noqa: ARG001 - one signature
    text, found = line.split("\t")
    return (text,), found


def _label_first(line: str, label: str) -> Record:  # noqa: ARG001
    found, text = line.split(" ", 1)
    return (text,), found


def _question(line: str, label: str) -> Record:  # noqa: ARG001
    coarse, rest = line.split(":", 1)
    return (rest.split(" ", 1)[1],), coarse


def _paraphrase(line: str, label: str) -> Record:  # noqa: ARG001
    found, _, _, one, two = line.split("\t")
    return (one, two), found


def _polar(positive: str, negative: str, classes: tuple[str, str] = ("0", "1")) -> TransferSet:
    return TransferSet(classes, {"all": ((negative, "0"), (positive, "1"))}, _whole)


def _sst(folder: str, classes: tuple[str, ...], parse: Callable[[str, str], Record]) -> TransferSet:
    splits = ("train", "dev", "test")
    return TransferSet(classes, {split: ((f"SST/{folder}/sentiment-{split}", ""),) for split in splits}, parse)


TRANSFER_SETS: Final[dict[str, TransferSet]] = {
    "mr": _polar("MR/rt-polarity.pos", "MR/rt-polarity.neg"),
    "cr": _polar("CR/custrev.pos", "CR/custrev.neg"),
    "subj": _polar("SUBJ/subj.subjective", "SUBJ/subj.objective", classes=("1", "0")),
    "mpqa": _polar("MPQA/mpqa.pos", "MPQA/mpqa.neg"),
    "sst2": _sst("binary", ("0", "1"), _label_last),
    "sst5": _sst("fine", ("0", "1", "2", "3", "4"), _label_first),
    "trec": TransferSet(
        ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM"),
        {"train": (("TREC/train_5500.label", ""),), "test": (("TREC/TREC_10.label", ""),)},
        _question,
        label="coarse_label",
    ),
    "mrpc": TransferSet(
        ("0", "1"),
        {split: ((f"MRPC/msr_paraphrase_{split}.txt", ""),) for split in ("train", "test")},
        _paraphrase,
        header=True,
        texts=("sentence1", "sentence2"),
    ),
}
