"""SentEval's transfer sets: their columns, their classes in its order, the files of its download script, their rows.

The class numbers decide the classifier's first weights, so their order is SentEval's: SUBJ counts objective as 1.
A blank line of a file whose name says the class is a row, as in SentEval; it has no words, so it comes first in the
order that decides the folds.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import fsspec
import polars as pl

from storage.declarations import DATASETS, require_rows
from storage.errors import SourceError
from storage.readers.columns import Columns
from storage.readers.report import ReadReport
from storage.reading import read_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from storage.sources import ResolvedSource

CLASS = "class"
Record = tuple[tuple[str, ...], str]
"""Texts and label of one line."""


@dataclass(frozen=True)
class TransferFiles:
    """How one set spells its rows.

    Attributes:
        classes: label as it is spelled in a table, by class number.
        files: split to the original files, each with the label of all its lines ("" where a line names its own).
        parse: texts and label of a line of them, given the file's label.
        header: whether their first line names columns.
        label: column of a table that holds the label.
        f1: whether papers report F1 of class 1 beside the accuracy.
    """

    classes: tuple[str, ...]
    files: dict[str, tuple[tuple[str, str], ...]]
    parse: Callable[[str, str], Record]
    header: bool = False
    label: str = "label"
    f1: bool = False


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


def _polar(positive: str, negative: str, classes: tuple[str, str] = ("0", "1")) -> TransferFiles:
    return TransferFiles(classes, {"all": ((negative, "0"), (positive, "1"))}, _whole)


def _sst(folder: str, classes: tuple[str, ...], parse: Callable[[str, str], Record]) -> TransferFiles:
    splits = ("train", "dev", "test")
    return TransferFiles(classes, {split: ((f"SST/{folder}/sentiment-{split}", ""),) for split in splits}, parse)


TRANSFER_SETS: Final[dict[str, TransferFiles]] = {
    "mr": _polar("MR/rt-polarity.pos", "MR/rt-polarity.neg"),
    "cr": _polar("CR/custrev.pos", "CR/custrev.neg"),
    "subj": _polar("SUBJ/subj.subjective", "SUBJ/subj.objective", classes=("1", "0")),
    "mpqa": _polar("MPQA/mpqa.pos", "MPQA/mpqa.neg"),
    "sst2": _sst("binary", ("0", "1"), _label_last),
    "sst5": _sst("fine", ("0", "1", "2", "3", "4"), _label_first),
    "trec": TransferFiles(
        ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM"),
        {"train": (("TREC/train_5500.label", ""),), "test": (("TREC/TREC_10.label", ""),)},
        _question,
        label="coarse_label",
    ),
    "mrpc": TransferFiles(
        ("0", "1"),
        {split: ((f"MRPC/msr_paraphrase_{split}.txt", ""),) for split in ("train", "test")},
        _paraphrase,
        header=True,
        f1=True,
    ),
}


def read_transfer_table(name: str, split: str, source: ResolvedSource) -> pl.DataFrame:
    """A split from a table: its texts ("" where SentEval's file has a blank line), and `class` (Int64).

    Raises:
        SourceError: a column is missing, a label is none of the set's, or the rows are not as many as papers count.
    """
    report = ReadReport(f"{name} {split}")
    label = TRANSFER_SETS[name].label
    frames = list(read_columns(source, Columns(DATASETS[name].texts, (label,)), report))
    table = pl.concat(frames).with_columns(pl.col(label).cast(pl.String))
    return _checked(name, split, table.rename({label: CLASS}))


def read_senteval_files(name: str, split: str, sources: Sequence[ResolvedSource]) -> pl.DataFrame:
    """A split from SentEval's files, as `read_transfer_table`.

    Args:
        name: the set.
        split: the split.
        sources: its files, as declared.

    Raises:
        SourceError: a line has another form, or as `read_transfer_table`.
    """
    declared = TRANSFER_SETS[name]
    files = zip(sources, declared.files[split], strict=True)
    rows = [row for source, (_, label) in files for row in _lines(source.files[0], label, declared)]
    schema = dict.fromkeys([*DATASETS[name].texts, CLASS], pl.String)
    table = pl.DataFrame([(*texts, label) for texts, label in rows], schema=schema, orient="row", strict=True)
    return _checked(name, split, table)


def _lines(path: str, label: str, declared: TransferFiles) -> list[tuple[tuple[str, ...], str]]:
    with fsspec.open(path, "rb") as file:
        lines = io.StringIO(_decoded(file.read()))  # a line feed ends a line, and nothing else does
    out = []
    for number, line in enumerate(map(str.strip, lines), 1):
        if (number == 1 and declared.header) or not (line or label):
            continue
        try:
            out.append(declared.parse(line, label))
        except (ValueError, IndexError) as error:
            raise SourceError(
                f"{path}, line {number}: {line[:100]!r} has not the form of this set's files; expected the file that "
                "SentEval's download script makes; fetch it again"
            ) from error
    return out


def _decoded(content: bytes) -> str:
    """The files are UTF-8 or, as first distributed, Windows' superset of Latin-1."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", errors="replace")


def _checked(name: str, split: str, table: pl.DataFrame) -> pl.DataFrame:
    require_rows(name, split, table.height)
    classes = TRANSFER_SETS[name].classes
    number = pl.col(CLASS).replace_strict(list(classes), list(range(len(classes))), default=None, return_dtype=pl.Int64)
    numbered = table.select(*DATASETS[name].texts, number)
    unknown = numbered[CLASS].is_null().arg_true()
    if len(unknown):
        row = int(unknown[0])
        raise SourceError(
            f"{name} {split}: row {row + 1} has the label {table[CLASS][row]!r}, expected one of "
            f"{', '.join(classes)}; correct it, or name the right column"
        )
    return numbered
