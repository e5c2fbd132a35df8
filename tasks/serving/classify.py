"""Classify texts and files with the classifier of `bsl adapt`; this module needs no Prefect server.

A classifier is found by its report, by `classifier/<key>` or `checkpoint/<key>`, or in the folder of an exported
encoder (`classifier/`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bsl.models.corpus.normalize import has_text
from bsl.models.encoder.config import EncoderConfig
from bsl.models.serving.classifier import LinearClassifier
from bsl.storage.artifacts.lookup import find
from bsl.storage.artifacts.refs import ArtifactRef, CheckpointRef, ClassifierRef
from bsl.storage.errors import ArtifactMissingError, SourceError
from bsl.storage.filesystem.atomic import atomic_write
from bsl.storage.filesystem.os_errors import writing
from bsl.storage.readers.carried import as_text, joined
from bsl.storage.readers.columns import Columns, known_shape, require
from bsl.storage.readers.formats import columns_of, format_of, read_table
from bsl.storage.readers.read_report import ReadReport
from bsl.storage.readers.text_columns import SAMPLE, is_prose, require_header
from bsl.storage.sources.classifier_names import ARTIFACTS, classifier_folder, no_classifier
from bsl.tasks.embedding.encode import ResumableEncoding
from bsl.tasks.embedding.encoders import resolve
from bsl.tasks.reporting.export import classifier_on
from bsl.tasks.stage.progress import announce

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from bsl.models.runtime.precision import Precision
    from bsl.models.runtime.progress import OnProgress
    from bsl.storage.artifacts.store import Store
    from bsl.tasks.stage.run_context import RunContext

MOST: Final = 3
"""Number of classes in a classified file."""
_OPTION: Final = "with --text-column"
_WRITERS: Final[dict[str, Callable[[pl.DataFrame, Path], None]]] = {
    ".csv": lambda frame, path: as_text(frame).write_csv(path),
    ".tsv": lambda frame, path: as_text(frame).write_csv(path, separator="\t"),
    ".jsonl": lambda frame, path: as_text(frame).write_ndjson(path),
    ".parquet": lambda frame, path: frame.write_parquet(path),
}


@dataclass(frozen=True)
class TextClassifier:
    """An encoder, from texts to vectors (n, D), and a linear classifier on its vectors."""

    encode: ResumableEncoding
    linear: LinearClassifier

    def probabilities(self, texts: list[str], on_progress: OnProgress | None = None) -> NDArray[np.float64]:
        """Return the probability of each class, (n, C).

        Raises:
            NoEmbeddingError: A text has no embedding.
        """
        if not texts:
            return np.empty((0, len(self.linear.settings.classes)))
        return self.linear.probabilities(self.encode(texts, on_progress))


def find_classifier(site: RunContext, name: str, precision: Precision) -> TextClassifier:
    """Find a classifier and its encoder, by report, classifier or checkpoint, or the folder of an exported encoder.

    Raises:
        ArtifactMissingError, SourceError: There is no such name, or it has no classifier.
        EvaluationError: The classifier's files are damaged.
    """
    encoder, folder = _located(site.open_store(), name)
    found = resolve(site, EncoderConfig(model=encoder))
    encode = ResumableEncoding(site, found.encoder, found.config, precision)
    return TextClassifier(encode, LinearClassifier.load(folder))


def _located(store: Store, name: str) -> tuple[str, Path]:
    """Return the name of the encoder, and the folder of the classifier."""
    if (folder := classifier_folder(name)) is not None:
        return str(folder.parent), folder
    if name.startswith(ARTIFACTS):
        ref = _classifier_of(store, find(store, name))
        store.used(ref)
        return f"checkpoint/{store.manifest(ref).provenance.inputs['exported'].key}", store.fetch(ref)
    raise no_classifier(name)


def _classifier_of(store: Store, ref: ArtifactRef) -> ClassifierRef:
    if ref.kind == "classifier":
        return ClassifierRef(key=ref.key)
    made = store.manifest(ref).provenance.inputs.get("classifier") if ref.kind == "report" else None
    found = ClassifierRef(key=made.key) if made else None
    if ref.kind == "checkpoint":
        found = classifier_on(store, CheckpointRef(key=ref.key))
    if found is None:
        raise ArtifactMissingError(
            f"{ref}: has no classifier (expected a report of `bsl adapt` with labels of classes). Make one: "
            "bsl adapt TEXT --labels FILE"
        )
    return found


@dataclass(frozen=True)
class Input:
    """The rows of a file to classify: the columns that can be copied, and names of others (nested, bytes)."""

    table: pl.DataFrame
    column: str
    dropped: tuple[str, ...]

    @property
    def summary(self) -> str:
        """How the file is read, in one sentence."""
        lost = f"; nested columns and bytes are not carried: {', '.join(self.dropped)}" if self.dropped else ""
        change = f" (change it {_OPTION})" if self.table.width > 1 else ""
        return f"text in `{self.column}`{change}{lost}"


def read_input(path: str, named: str | None, trained: str, encoding: str | None = None) -> Input:
    """Read a file to classify.

    The texts are in the column that the user named, else in that of the classifier's training texts, else in the only
    column of prose.

    Raises:
        SourceError: The file is missing, empty or has an unreadable record, its first line is data instead of a header,
            or no or several columns may be the text.
    """
    form, report = format_of(path), ReadReport(path)
    every = columns_of(path, form, encoding=encoding)
    names = columns_of(path, form, carried=True, encoding=encoding)
    may_be_text = columns_of(path, form, readable=True, encoding=encoding)
    if not may_be_text:
        raise SourceError(
            f"{path}: no column has strings or numbers (columns: {', '.join(map(repr, every)) or 'none'}), expected "
            "one with texts. Write each text as a string, in a column `text`."
        )
    require(path, may_be_text, [named] if named is not None else [], _OPTION)
    frames = list(read_table(path, form, Columns((), carried=names), report, encoding=encoding))
    report.check(0.0)  # rows of the result are those of the file
    table = joined(frames)
    if form in ("csv", "tsv"):  # Polars would write an empty string as ""
        table = table.with_columns(pl.col(pl.String).replace("", None))
    column = named
    if column is None:
        if trained not in every and known_shape(every) is None:
            require_header(path, form, table.select(may_be_text).head(SAMPLE), _OPTION)
        column = _text_column(path, table.select(may_be_text), every, trained)
    return Input(table, column, tuple(name for name in every if name not in names))


def _text_column(path: str, table: pl.DataFrame, every: Sequence[str], trained: str) -> str:
    """Return the column of texts among those that can be read; `every` also has the others, one of which may be it."""
    if trained in table.columns or len(every) == 1:
        return trained if trained in table.columns else table.columns[0]
    prose = [name for name in table.columns if is_prose(table[name].cast(pl.String).head(SAMPLE))]
    shape = known_shape(table.columns)
    found = [] if trained in every else prose or ([*shape.texts] if shape else [])
    if len(found) != 1:
        unread = ", ".join(f"`{name}`" for name in every if name not in table.columns)
        write = f", or write the values of {unread} (lists, objects or bytes) as strings" if unread else ""
        raise SourceError(
            f"{path}: {'several columns' if found else 'no column'} may be the text (found "
            f"{', '.join(f'`{name}`' for name in found or table.columns)}, expected one). Name it {_OPTION}{write}."
        )
    return found[0]


def classified(classifier: TextClassifier, given: Input, on_progress: OnProgress | None = None) -> pl.DataFrame:
    """Return the columns of a file, and for each row the three most probable classes with their probabilities.

    A row without text has no class. If the file has a column of a name that would be added, all added names begin with
    `predicted_`.

    Raises:
        NoEmbeddingError: A text has no embedding.
    """
    texts = given.table[given.column].cast(pl.String).str.strip_chars()
    unique = texts.drop_nulls().unique(maintain_order=True)
    unique = unique.filter(unique.to_frame("text").select(has_text(pl.col("text"))).to_series())
    for note in classifier.encode.notes([unique.to_frame("text")]):
        announce(note)
    likely = _most_likely(classifier.probabilities(unique.to_list(), on_progress), classifier.linear.settings.classes)
    prefix = "predicted_" if set(likely.columns) & {*given.table.columns} else ""
    likely = likely.rename(lambda name: f"{prefix}{name}")
    if taken := sorted({*likely.columns} & {*given.table.columns}):
        raise SourceError(f"the file has a column {taken[0]!r}, which would be added. Rename the column.")
    keys = pl.DataFrame({_KEY: texts}).join(
        likely.with_columns(unique.alias(_KEY)), _KEY, "left", maintain_order="left"
    )
    return pl.concat([given.table, keys.drop(_KEY)], how="horizontal")


_KEY: Final = "\0text"  # no column has this name


def _most_likely(probabilities_NC: NDArray[np.float64], classes: Sequence[str]) -> pl.DataFrame:
    """Return `label`, `probability`, `label_2`, `probability_2` and so on."""
    order_NK = np.argsort(-probabilities_NC, axis=1, kind="stable")[:, :MOST]
    columns: dict[str, pl.Series] = {}
    for rank in range(min(MOST, len(classes))):
        number, suffix = order_NK[:, rank], f"_{rank + 1}" if rank else ""
        columns[f"label{suffix}"] = pl.Series([classes[one] for one in number], dtype=pl.String)
        columns[f"probability{suffix}"] = pl.Series(probabilities_NC[np.arange(len(number)), number]).round(4)
    return pl.DataFrame(columns)


def check_target(target: Path) -> None:
    """Check the name of a new file of results.

    Raises:
        ValueError: Its suffix is of no table.
    """
    if target.suffix not in _WRITERS:
        raise ValueError(f"{target}: expected a name that ends in {', '.join(_WRITERS)}, such as out.csv")


def write_table(table: pl.DataFrame, target: Path) -> None:
    """Write a table in the format of its suffix.

    Raises:
        StoreWriteError: The folder cannot be written.
    """
    with writing(target.parent), atomic_write(target) as path:
        _WRITERS[target.suffix](table, path)
