"""Options shared by several commands, each declared once.

A command is a function; its parameters are its options. A group of options is a frozen dataclass whose fields are
options of the command. `bsl.flows.run_context` reads the environment variables in the help, also for workers.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from os.path import getsize, isfile
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from cyclopts import Group, Parameter

from bsl.flows.cli.terminal.overrides import changes_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bsl.flows.recipes.adaptation import AdaptConfig
    from bsl.tasks.corpus.config import OwnTextConfig

PLACE: Final = Group("Runtime", sort_key=2)
OUTPUT: Final = Group("Output", sort_key=3)
READING: Final = Group("Reading files", sort_key=1)
ENCODER_FORMS: Final = "folder, Hub id, embedded:<name>, checkpoint/<key> or report/<key>"
TEXTS: Final = "query"  # the parameter that takes texts; all other words may be addresses
_SMALL_BYTES: Final = 1 << 16  # text files up to this size are read before a run
TEXT_FORMS: Final = "files (txt, csv, tsv, jsonl, parquet), folders, patterns with *, or datasets"

StoreUrl = Annotated[
    str | None, Parameter(group=PLACE, help="URL of the artifact store [default: .bsl/store] [env: BSL_STORE]")
]
MirrorFolder = Annotated[
    str | None,
    Parameter(group=PLACE, help="folder with datasets and models, read before the Hub [env: BSL_DATA_MIRROR]"),
]


@Parameter(name="*", group=PLACE)
@dataclass(frozen=True, kw_only=True)
class Place:
    """Runtime options of one process."""

    store: StoreUrl = None
    mirror: MirrorFolder = None
    device: Annotated[
        str | None, Parameter(help="cpu, cuda, cuda:1 … [default: a GPU if there is one] [env: BSL_DEVICE]")
    ] = None
    threads: Annotated[int | None, Parameter(help="CPU threads [default: all cores] [env: BSL_THREADS]")] = None

    @property
    def given(self) -> dict[str, Any]:
        """The options by the names of their fields in `RunContext`; None for an option that was not given."""
        return asdict(self)


@Parameter(name="*", group=PLACE)
@dataclass(frozen=True, kw_only=True)
class Site(Place):
    """Runtime options of a run."""

    cluster: Annotated[str | None, Parameter(help="Dask scheduler, for example tcp://HOST:8786 [env: BSL_CLUSTER]")] = (
        None
    )


Debug = Annotated[bool, Parameter(group=OUTPUT, help="show tracebacks and Prefect's log")]


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True, kw_only=True)
class Output:
    """Options of a command's output."""

    json: Annotated[bool, Parameter(help="print only the result, as one JSON value")] = False
    debug: Debug = False


AskedEncoding = Annotated[
    str | None, Parameter(help="encoding of files that are not UTF-8, such as cp1252 or utf-16-le")
]


@Parameter(name="*", group=READING)
@dataclass(frozen=True, kw_only=True)
class Reading:
    """Options for reading the user's files."""

    encoding: AskedEncoding = None
    lang: Annotated[str | None, Parameter(help="ISO 639 code of the text's language [default: en]")] = None
    columns: Annotated[
        tuple[str, ...] | None, Parameter(consume_multiple=(1, None), help="columns with text [default: guessed]")
    ] = None
    title: Annotated[str | None, Parameter(help="column with titles, '' for none [default: guessed]")] = None
    document: Annotated[
        str | None,
        Parameter(
            help="column with the same value in all rows of a document, writer or customer, '' for none; labelled rows "
            "with the same value are all training or all test labels [default: guessed for text]"
        ),
    ] = None

    @property
    def given(self) -> dict[str, Any]:
        """The options that were given, by the names of their settings."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def among(self, settings: Settings, section: str) -> Settings:
        """Return settings that also contain the given options, in a section; `--set` overrides them."""
        options = (f"{section}.{name}={json.dumps(value)}" for name, value in self.given.items())
        return replace(settings, settings=(*options, *settings.settings))


LABELLED: Final = Group("Reading labels", sort_key=1)


@Parameter(name="*", group=LABELLED)
@dataclass(frozen=True, kw_only=True)
class LabelColumns:
    """Options that name the columns of the user's labels."""

    label_column: Annotated[
        str | None,
        Parameter(
            help="column with classes or scores, in files of labels [default: guessed by name: label, class, score …]"
        ),
    ] = None
    text_column: Annotated[
        tuple[str, ...],
        Parameter(consume_multiple=(1, None), help="text column of files of labels, two for pairs [default: guessed]"),
    ] = ()

    def of_file(self, path: str | None, encoding: str | None = None) -> str | None:
        """Return the name of a file of labels with these columns; None without a file.

        Raises:
            ValueError: Columns are named without a file.
        """
        from bsl.storage.sources.label_names import with_label_columns

        if path is None:
            self._refuse_unused("--labels FILE")
            return None
        return with_label_columns(path, self.label_column, self.text_column, encoding)

    def of_sets(self, names: Sequence[str], document: str | None = None) -> tuple[str, ...]:
        """Return names of evaluation sets, with these columns in the files of labels.

        Raises:
            ValueError: Columns are named, but no set is a file of labels.
        """
        from bsl.storage.sources.label_names import SET_PREFIX, set_with_label_columns

        if not any(name.startswith(SET_PREFIX) for name in names):
            self._refuse_unused(f"--suite {SET_PREFIX}FILE")
        return tuple(set_with_label_columns(name, self.label_column, self.text_column, document) for name in names)

    def _refuse_unused(self, needed: str) -> None:
        for name, value in asdict(self).items():
            if value:
                option = f"--{name.replace('_', '-')}"
                raise ValueError(f"{option}: names a column of labels, but no file of labels is given. Add {needed}")


Changes = Annotated[
    tuple[str, ...],
    Parameter(
        name="--set", metavar="FIELD=VALUE", help="change a setting, for example training.lr=3e-4; may be repeated"
    ),
]
AskedPrecision = Annotated[
    Literal["auto", "fp32", "bf16"] | None,
    Parameter(
        help="precision of training and encoding; auto: bf16 if the device is faster in it, else fp32 "
        "[default: that of the recipe, else auto]"
    ),
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Settings:
    """Options that change the settings of a recipe or a command."""

    settings: Changes = ()
    precision: AskedPrecision = None

    def changes(self, sections: Iterable[str] = ()) -> dict[str, Any]:
        """Return nested changes for `bsl.flows.config.override`; `--set` overrides `--precision`.

        Args:
            sections: Sections of the configuration that have a precision.

        Raises:
            ValueError: A setting of `--set` is malformed, or two settings contradict each other.
        """
        by_precision = [f"{section}.precision={self.precision}" for section in sections if self.precision]
        return changes_of([*by_precision, *self.settings])


def check_texts(texts: Sequence[str], place: Place) -> None:
    """Check that every name refers to files or a dataset.

    Args:
        texts: Files, folders, patterns or datasets.
        place: Options that name the mirror, which may have a dataset.

    Raises:
        SourceError, AssetError: A name does not exist; the message suggests the closest name.
    """
    from bsl.flows.run_context import run_context_of
    from bsl.storage.sources.own_text import check_named

    for name in texts:
        check_named(name, run_context_of(place.given).mirror)


def check_amount(texts: Sequence[str], config: AdaptConfig | OwnTextConfig, labels: str | None) -> None:
    """Check that small files have enough sentences to hold some out, before a server starts; runs check all texts.

    Args:
        texts: Files, folders, patterns or datasets; only files are checked.
        config: Settings of the columns and the parts.
        labels: File of labels; without one, questions about the text are needed.

    Raises:
        EmptyCorpusError, EvaluationError: There are too few sentences.
        SourceError: A file cannot be read as text.
    """
    if not all(map(isfile, texts)) or sum(map(getsize, texts)) > _SMALL_BYTES:
        return
    from bsl.models.corpus.passages import LeftOut
    from bsl.models.errors import EvaluationError
    from bsl.models.evaluation.own_text import retrieval_questions, too_few
    from bsl.storage.sources.labels import sources_and_labels
    from bsl.tasks.corpus.own_sentences import parts_of

    sources, _ = sources_and_labels(config, texts, labels)
    _, parts = parts_of(sources, config.hold_out, LeftOut())
    held_out = parts.filter(part="report")
    if labels is None and not retrieval_questions(held_out):
        raise EvaluationError(f"{too_few(held_out)}. Or give labels.")


def check_sets(names: Sequence[str], place: Place) -> None:
    """Check names of evaluation sets: the files after `own:` or `labels:`, and the splits of declared datasets.

    Raises:
        SourceError, AssetError: A file or split does not exist; the message suggests the closest name.
    """
    from bsl.storage.assets.embedded import EMBEDDED
    from bsl.storage.datasets.registry import DATASETS
    from bsl.storage.sources import labels, own_text
    from bsl.storage.sources.sources import SourceSpec, mirrored_table

    check_texts(
        [name.removeprefix(own_text.SET_PREFIX) for name in names if name.startswith(own_text.SET_PREFIX)], place
    )
    check_labels(*(name.removeprefix(labels.SET_PREFIX) for name in names if name.startswith(labels.SET_PREFIX)))
    for name in names:
        dataset, _, split = name.removeprefix(EMBEDDED).rpartition("/")
        if dataset in DATASETS:
            mirrored_table(SourceSpec(dataset=dataset, split=split), None)  # raises if there is no such split


def check_suites(names: Sequence[str]) -> None:
    """Refuse unknown names of suites and datasets without importing the kinds of evaluation, which import Prefect.

    Raises:
        ValueError: A name is neither a suite nor a set; the message suggests the closest name.
    """
    from bsl.storage.assets.embedded import EMBEDDED
    from bsl.storage.datasets.registry import ALL, DATASETS, OTHER_SETS, suites_of
    from bsl.storage.filesystem.spelling import did_you_mean
    from bsl.storage.sources import labels, own_text

    known = (*suites_of(DATASETS.values()), ALL, *DATASETS, *OTHER_SETS)
    for name in names:
        is_known = name.removeprefix(EMBEDDED).partition("/")[0] in known
        if not is_known and not name.startswith((own_text.SET_PREFIX, labels.SET_PREFIX)):
            hint = did_you_mean(name, known)
            raise ValueError(f"unknown suite or set {name!r}.{hint} `bsl evaluate --help` lists all")


def check_files(*paths: str | None) -> None:
    """Check that paths exist and have known suffixes; None is skipped.

    Raises:
        SourceError: A path does not exist, and the message suggests the closest path; or a file's suffix is unknown.
    """
    from bsl.storage.readers.formats import format_of
    from bsl.storage.sources.paths import listed

    for path in paths:
        for file in listed(path) if path is not None else ():
            format_of(file)


def check_labels(*names: str | None) -> None:
    """Check files of labels as `check_files` does; their names may contain columns.

    Raises:
        SourceError: As for `check_files`.
        ValueError: The columns in a name are malformed.
    """
    from bsl.storage.sources.label_names import label_file

    check_files(*(label_file(name).path for name in names if name is not None))


def check_encoders(names: Sequence[str | None], place: Place) -> None:
    """Check names of encoders against the package, this machine and the store, without contacting the Hub.

    Args:
        names: Names as commands accept them; None is skipped.
        place: Options that name the store and the mirror.

    Raises:
        SourceError, AssetError, ArtifactMissingError: An encoder does not exist; the message suggests the closest name.
    """
    from bsl.flows.run_context import run_context_of
    from bsl.storage.artifacts.lookup import find
    from bsl.storage.sources.model_sources import check_model_name, is_made_here
    from bsl.storage.sources.word_vectors import check_vectors_name, is_vectors_file

    site = run_context_of(place.given)
    for name in filter(None, names):
        if is_made_here(name):
            find(site.open_store(), name)
        elif is_vectors_file(name):
            check_vectors_name(name)
        else:
            check_model_name(name, site.mirror)
