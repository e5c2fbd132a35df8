"""Read the files of SentEval's download script: each is a split or a class of a transfer set.

Class numbers decide the classifier's initial weights, so their order is SentEval's: in SUBJ, objective is 1. In a file
of a single class, a blank line counts as a row without words, as in SentEval.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from typing import Final

import polars as pl

from bsl.storage.errors import SourceError
from bsl.storage.readers.blocks import read_bytes


@dataclass(frozen=True)
class TransferFiles:
    """File format of one transfer set.

    Attributes:
        classes: each class's label in a table, by class number.
        files: split → original files, each with the label of all its lines ("" if each line has its own).
        line: pattern of a line; its groups are the text columns, and `label` if each line has its own.
        header: whether the first line names columns.
        texts: text columns of a table.
        label: label column of a table.
        f1: whether papers report F1 of class 1 in addition to the accuracy.
    """

    classes: tuple[str, ...]
    files: dict[str, tuple[tuple[str, str], ...]]
    line: str
    header: bool = False
    texts: tuple[str, ...] = ("text",)
    label: str = "label"
    f1: bool = False


_TEXT: Final = r"(?P<text>.*)"
_LABEL_LAST: Final = r"(?P<text>[^\t]*)\t(?P<label>[^\t]*)"
_LABEL_FIRST: Final = r"(?P<label>[^ ]*) (?P<text>.*)"
_QUESTION: Final = r"(?P<label>[^:]*):[^ ]* (?P<text>.*)"  # only the coarse class is a label
_PARAPHRASE: Final = r"(?P<label>[^\t]*)\t[^\t]*\t[^\t]*\t(?P<sentence1>[^\t]*)\t(?P<sentence2>[^\t]*)"


def _polar(positive: str, negative: str, classes: tuple[str, str] = ("0", "1")) -> TransferFiles:
    return TransferFiles(classes, {"all": ((negative, "0"), (positive, "1"))}, _TEXT)


def _sst(folder: str, classes: tuple[str, ...], line: str) -> TransferFiles:
    splits = ("train", "dev", "test")
    return TransferFiles(classes, {split: ((f"SST/{folder}/sentiment-{split}", ""),) for split in splits}, line)


TRANSFER_SETS: Final[dict[str, TransferFiles]] = {
    "mr": _polar("MR/rt-polarity.pos", "MR/rt-polarity.neg"),
    "cr": _polar("CR/custrev.pos", "CR/custrev.neg"),
    "subj": _polar("SUBJ/subj.subjective", "SUBJ/subj.objective", classes=("1", "0")),
    "mpqa": _polar("MPQA/mpqa.pos", "MPQA/mpqa.neg"),
    "sst2": _sst("binary", ("0", "1"), _LABEL_LAST),
    "sst5": _sst("fine", ("0", "1", "2", "3", "4"), _LABEL_FIRST),
    "trec": TransferFiles(
        ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM"),
        {"train": (("TREC/train_5500.label", ""),), "test": (("TREC/TREC_10.label", ""),)},
        _QUESTION,
        label="coarse_label",
    ),
    "mrpc": TransferFiles(
        ("0", "1"),
        {split: ((f"MRPC/msr_paraphrase_{split}.txt", ""),) for split in ("train", "test")},
        _PARAPHRASE,
        header=True,
        texts=("sentence1", "sentence2"),
        f1=True,
    ),
}
_FILES: Final = {
    name: (declared, label)
    for declared in TRANSFER_SETS.values()
    for parts in declared.files.values()
    for name, label in parts
}


def columns(path: str) -> tuple[str, ...]:
    """Return the column names of the set's tables; SentEval's files have no usable header.

    Raises:
        SourceError: the file is not one of SentEval's.
    """
    files = _known(path)[0]
    return (*files.texts, files.label)


def read_senteval(path: str) -> pl.DataFrame:
    """Return a file's rows, all strings, with "" for the text of a blank line.

    Raises:
        SourceError: the file is not one of SentEval's, or a line has another format.
    """
    files, label = _known(path)
    rows = []
    lines = io.StringIO(_decoded(read_bytes(path)))  # only a line feed ends a line
    for number, line in enumerate(map(str.strip, lines), 1):
        if (number == 1 and files.header) or not (line or label):
            continue
        found = re.fullmatch(files.line, line)
        if found is None:
            raise SourceError(
                f"{path}, line {number}: {line[:100]!r} does not have the format of this set, expected the file of "
                "SentEval's download script. Fetch it again."
            )
        rows.append((*(found[name] for name in files.texts), found.groupdict().get("label", label)))
    return pl.DataFrame(rows, schema=dict.fromkeys(columns(path), pl.String), orient="row", strict=True)


def _known(path: str) -> tuple[TransferFiles, str]:
    """Return the transfer set of a file, by the end of its path, and the label of all its lines."""
    if found := next((known for name, known in _FILES.items() if path.endswith(f"/{name}")), None):
        return found
    raise SourceError(f"{path}: not a file of SentEval, expected a path that ends in one of {', '.join(_FILES)}")


def _decoded(content: bytes) -> str:
    """Decode UTF-8, or cp1252 (Windows' superset of Latin-1), the encoding of the first distribution."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", errors="replace")
