"""Read the user's labelled text: sentence pairs with a score, or sentences with a class, guessed from the columns."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Final, Literal, NoReturn

import polars as pl

from bsl.storage.errors import SourceError
from bsl.storage.filesystem.digests import joint_sha256, source_sha256
from bsl.storage.filesystem.secrets import without_password
from bsl.storage.filesystem.urls import absolute
from bsl.storage.readers import jsonl
from bsl.storage.readers.columns import Columns
from bsl.storage.readers.formats import Format, columns_of, format_of, read_table
from bsl.storage.readers.read_report import ReadReport
from bsl.storage.readers.text_columns import SAMPLE, require_header
from bsl.storage.record import NotInKey, Record
from bsl.storage.sources.label_columns import (
    EXPECTED,
    NAME_LABEL,
    NAME_TEXT,
    label_columns,
    obstacle,
    prose_columns,
    remedy,
    sides,
)
from bsl.storage.sources.label_groups import group_names, likely_group, require_groups
from bsl.storage.sources.label_names import SET_PREFIX, LabelFile, label_file
from bsl.storage.sources.label_values import class_labels, decimal_comma, folded_spellings, scores, words_as_classes
from bsl.storage.sources.own_text import TITLES, TextSource, text_sources
from bsl.storage.sources.paths import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bsl.storage.sources.reading_config import ReadingConfig

__all__ = ["SET_PREFIX", "LabelSource", "label_source", "read_labels"]

_ALIKE: Final = "alike in all files of the labels, or give one of these files"
_MAX_BAD_SHARE: Final = 0.01  # maximum share of unreadable records
_SHOWN: Final = 5  # spellings in a message
_LIKE_JSON: Final = r"(?s)^(\[.*\]|\{.*\})$"
_LARGEST_SCORE: Final = 1e6
"""Above every scale of similarity; a larger value is a mistake or an id."""


class LabelSource(Record):
    """A file of labelled text, or a folder of parts of it, and the columns to read."""

    digest: str
    """sha256 of the content."""
    format: Format
    kind: Literal["pairs", "classes"]
    """Pairs of sentences with a score, or sentences with a class."""
    texts: tuple[str, ...]
    """Text columns: two for pairs, one for classes."""
    label: str
    """Column of scores or classes."""
    document: str | None = None
    """Column whose equal values are rows of one document, writer or customer; None without one."""
    encoding: str | None = None
    """Encoding of the files that are not UTF-8."""
    rule: Literal[8] = 8
    """Version of the rules of missing labels, of equal labels and texts, and of the division into parts, in keys."""
    path: Annotated[str, NotInKey]
    left_out: Annotated[int, NotInKey] = 0
    """Rows without a label or a text."""
    unreadable: Annotated[int, NotInKey] = 0
    """Records that cannot be read."""
    first_unreadable: Annotated[str, NotInKey] = ""
    """File, line and fault of the first of these records."""
    classes: Annotated[int, NotInKey] = 0
    """Number of classes; 0 for pairs."""
    unused: Annotated[tuple[str, ...], NotInKey] = ()
    """Columns of titles and of other texts."""
    words: Annotated[tuple[tuple[str, int], ...], NotInKey] = ()
    """Classes spelt like a missing value, such as `NA`, and the number of their rows."""
    documents: Annotated[int, NotInKey] = 0
    """Number of values of `document`, or of `likely_document`."""
    likely_document: Annotated[str | None, NotInKey] = None
    """Column that looks like `document`, if that is None."""
    spellings: Annotated[tuple[tuple[str, str, int], ...], NotInKey] = ()
    """Labels that are written otherwise than their class, such as `1.0` than `1`: label, class, number of rows."""
    comma: Annotated[str, NotInKey] = ""
    """A score with a decimal comma."""

    @property
    def summary(self) -> str:
        """The columns in one sentence."""
        texts = " and ".join(f"`{text}`" for text in self.texts)
        if self.kind == "pairs":
            line = f"labels: scored pairs, text in {texts}, score in `{self.label}`"
        else:
            line = f"labels: {self.classes} classes, text in {texts}, class in `{self.label}`"
        together = f"rows with the same `{self.document}` stay together ({self.documents:,} values)"
        folded = [f"`{spelling}` ({rows:,}) is `{label}`" for spelling, label, rows in self.spellings[:_SHOWN]]
        folded += ["…"] if len(self.spellings) > _SHOWN else []
        notes = [
            *([together] if self.document else []),
            *(f"`{name}` is not used" for name in self.unused),
            *(f"{word!r} ({rows:,} rows) is a class, not a missing label" for word, rows in self.words),
            *([f"{self.unreadable:,} unreadable, the first {self.first_unreadable}"] if self.unreadable else []),
            *([f"the score {self.comma} is read as {self.comma.replace(',', '.')}"] if self.comma else []),
            *([f"equal as numbers or but for case, blanks, unseen characters: {', '.join(folded)}"] if folded else []),
        ]
        hint = ""
        if self.likely_document:
            hint = (
                f". `{self.likely_document}` ({self.documents:,} values) may be the writer, customer or thread of the "
                f"rows: --document {shlex.quote(self.likely_document)} keeps rows with the same value together"
            )
        return "; ".join([line, *notes]) + hint


def label_source(name: str, document: str | None = None) -> LabelSource:
    """Find a file of labels and guess the columns that its name does not contain.

    Args:
        name: A file, or a folder or pattern of files in one format with equal columns, and perhaps columns, as in
            `tickets.csv#label=queue` (`bsl.storage.sources.label_names`).
        document: Column whose equal values are rows of one document, writer or customer, if the file has it and its
            name contains none.

    Raises:
        ValueError: The address contains a password.
        SourceError: The file is missing, or its columns are neither scored pairs nor classes, or several columns may be
            the label, or a text or label of JSON lines is a list or an object.
    """
    given = label_file(name)
    path, encoding = without_password(given.path), given.encoding
    files = listed(path)
    form = _only_format(path, files)
    if form == "txt":
        raise SourceError(
            f"{path}: a text file has no columns, {EXPECTED}. Save texts and labels as .csv, or .tsv if tabs separate "
            "them, with a header line of the columns' names, such as text and label."
        )
    readable = columns_of(files[0], form, readable=True, encoding=encoding)
    if absent := {*given.texts, *([] if given.label is None else [given.label])} - {*readable}:
        found_too = columns_of(files[0], form, encoding=encoding)
        readable += tuple(name for name in found_too if name in absent)  # reading them says which type they have
    report = ReadReport(path)
    table = _table(files, form, readable, encoding, report) if readable else pl.DataFrame()
    found = label_columns(path, table, given) if table.width else None
    if found is None:
        _refuse(path, files[0], form, table, given)
    kind, texts, label = found
    if form == "jsonl":
        _refuse_nested(files, table, (*texts, label), encoding)
    if kind == "pairs":
        _require_scores(path, table[label])
    group = given.document or (document if document in table.columns else None)
    if group is not None:
        require_groups(path, table, group, label, texts)
    likely = likely_group(table, label, texts) if group is None and document != "" else None
    source = LabelSource(
        digest=source_sha256(path) if files == (path,) else joint_sha256(files),
        format=form,
        kind=kind,
        texts=texts,
        label=label,
        document=group,
        encoding=encoding,
        path=absolute(path),
        unused=_unused(table, (*texts, label, group)),
        words=words_as_classes(table[label]) if kind == "classes" else (),
        spellings=folded_spellings(table[label]) if kind == "classes" else (),
        comma=decimal_comma(table[label]) if kind == "pairs" else "",
    )
    rows = _labelled(source, table)
    classes = rows["label"].n_unique() if kind == "classes" else 0
    counts = {"left_out": table.height - rows.height, "classes": classes, "unreadable": report.rejected}
    if (named_group := group or likely) is not None:
        counts["documents"] = table[named_group].drop_nulls().n_unique()
    return source.model_copy(update={**counts, "likely_document": likely, "first_unreadable": report.first})


def sources_and_labels(
    reading: ReadingConfig, texts: Sequence[str], labels: str | None, mirror: str | None = None
) -> tuple[tuple[TextSource, ...], LabelSource | None]:
    """Find the user's text and labels; `reading.document` is a column of the text, of the labels, or of both.

    Raises:
        SourceError, ValueError: As for `label_source` and `text_sources`.
    """
    found = None if labels is None else label_source(labels, reading.document)
    only_labels = found is not None and found.document is not None and found.document == reading.document
    return text_sources(reading, texts, mirror, needs_document=not only_labels), found


def read_labels(source: LabelSource) -> pl.DataFrame:
    """Return the complete rows in order: `text_1`, `text_2` (null for classes), `label` (a string).

    With a column of documents, also `document`; rows without one are a document if they have the same first text.

    Raises:
        SourceError: the file cannot be read.
    """
    columns = (*source.texts, source.label, *([source.document] if source.document else []))
    table = _table(listed(source.path), source.format, columns, source.encoding, ReadReport(source.path))
    return _labelled(source, table)


def _only_format(path: str, files: Sequence[str]) -> Format:
    formats = sorted({format_of(file) for file in files})
    if len(formats) > 1:
        raise SourceError(
            f"{path}: files of {' and '.join(formats)}, expected one format. Select one by a pattern, such as "
            f"*.{formats[0]}."
        )
    return formats[0]


def _unused(table: pl.DataFrame, used: Sequence[str | None]) -> tuple[str, ...]:
    """Return the titles and texts among the columns that are not used."""
    _, texts, _ = prose_columns(table)
    return tuple(name for name in table.columns if (name in texts or name.lower() in TITLES) and name not in used)


def _refuse(path: str, file: str, form: Format, table: pl.DataFrame, given: LabelFile) -> NoReturn:
    require_header(file, form, table.head(SAMPLE), f"{NAME_TEXT}, and the label {NAME_LABEL}")
    columns = columns_of(file, form, encoding=given.encoding)
    _, once, known = prose_columns(table)
    texts = [*given.texts] or once or known
    unread = [name for name in columns if name not in table.columns]
    hint = remedy(table, [*given.texts] or sides(texts), unread, given.label)
    raise SourceError(
        f"{path}: no labels found in the columns {', '.join(map(repr, columns))} (text columns: "
        f"{', '.join(map(repr, texts)) or 'none'}{obstacle(table, texts)}), {EXPECTED}. {hint}"
    )


def _labelled(source: LabelSource, table: pl.DataFrame) -> pl.DataFrame:
    second = pl.col(source.texts[1]) if len(source.texts) == 2 else pl.lit(None, pl.String)
    labels = (class_labels if source.kind == "classes" else scores)(table[source.label])
    rows = table.with_columns(labels.alias(source.label)).drop_nulls([*source.texts, source.label])
    first = pl.col(source.texts[0])
    document = {} if source.document is None else {"document": group_names(pl.col(source.document), first)}
    return rows.select(text_1=first, text_2=second, label=pl.col(source.label), **document)


def _table(
    files: Sequence[str], kind: Format, columns: Sequence[str], encoding: str | None, whole: ReadReport
) -> pl.DataFrame:
    """Return columns as strings; a blank cell is null in all formats. Unreadable records are added to `whole`."""
    frames = []
    for file in files:
        report = ReadReport(file)
        requested = Columns((), tuple(columns))
        frames += list(read_table(file, kind, requested, report, encoding=encoding, remedy=_ALIKE))
        report.check(_MAX_BAD_SHARE)
        whole.rejected += report.rejected
        whole.bad += report.bad
    table = pl.concat([frame.cast(pl.String) for frame in frames])
    return table.select(pl.all().str.strip_chars().replace("", None))


def _refuse_nested(files: Sequence[str], table: pl.DataFrame, columns: Sequence[str], encoding: str | None) -> None:
    """Refuse JSON lines with a list or an object as text or label, which would be its JSON as a string."""
    suspect = [name for name in columns if table[name].str.contains(_LIKE_JSON).any()]
    for file in files if suspect else ():
        if found := jsonl.first_nested(file, suspect, encoding=encoding):
            line, name, kind = found
            raise SourceError(
                f"{file}, line {line}: {name!r} is {kind}, expected a string or a number. Write each text, class or "
                "score as a value of its own, or remove the line."
            )


def _require_scores(path: str, values: pl.Series) -> None:
    """Refuse scores that are not finite or outside a plausible scale."""
    wrong = (~(scores(values).cast(pl.Float64).abs() <= _LARGEST_SCORE)).fill_null(value=False).arg_true()
    if len(wrong):
        row = int(wrong[0])
        raise SourceError(
            f"{path}: row {row + 1} has the score {values[row]!r} in column {values.name!r}, expected a finite "
            f"similarity within ±{_LARGEST_SCORE:,.0f}. Correct it, or leave the cell blank."
        )
