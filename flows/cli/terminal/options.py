"""Options shared by several commands, each declared once.

A command is a function; its parameters are its options. A group of options is a frozen dataclass whose fields are
options of the command. `flows.run_context` reads the environment variables in the help, also for workers.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from os.path import getsize, isfile
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from cyclopts import Group, Parameter

from flows.cli.terminal.overrides import changes_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from flows.recipes.adaptation import AdaptConfig
    from flows.sweep.method_settings import FieldSettings

PLACE: Final = Group("Runtime", sort_key=2)
OUTPUT: Final = Group("Output", sort_key=3)
READING: Final = Group("Reading files", sort_key=1)
ENCODER_FORMS: Final = "folder, Hub id, embedded:<name>, checkpoint/<key> or report/<key>"
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


@Parameter(name="*", group=READING)
@dataclass(frozen=True, kw_only=True)
class Reading:
    """Options for reading the user's files."""

    lang: Annotated[str | None, Parameter(help="ISO 639 code of the text's language [default: en]")] = None
    columns: Annotated[
        tuple[str, ...] | None, Parameter(consume_multiple=(1, None), help="columns with text [default: guessed]")
    ] = None
    title: Annotated[str | None, Parameter(help="column with titles, '' for none [default: guessed]")] = None
    document: Annotated[
        str | None,
        Parameter(help="column with the same value in all rows of a document, '' for none [default: guessed]"),
    ] = None

    @property
    def given(self) -> dict[str, Any]:
        """The options that were given, by the names of their settings."""
        return {name: value for name, value in asdict(self).items() if value is not None}


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
        """Return nested changes for `flows.config.override`; `--set` overrides `--precision`.

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
    from flows.run_context import run_context_of
    from storage.sources.own_text import check_named

    for name in texts:
        check_named(name, run_context_of(place.given).mirror)


def check_amount(texts: Sequence[str], config: AdaptConfig | FieldSettings, *, asks: bool = False) -> None:
    """Check that small files have enough sentences to hold some out, before a server starts; runs check all texts.

    Args:
        texts: Files, folders, patterns or datasets; only files are checked.
        config: Settings of the columns and the parts.
        asks: Whether questions about the text are needed.

    Raises:
        EmptyCorpusError, EvaluationError: There are too few sentences.
        SourceError: A file cannot be read as text.
    """
    if not all(map(isfile, texts)) or sum(map(getsize, texts)) > _SMALL_BYTES:
        return
    from models.corpus.passages import LeftOut
    from models.errors import EvaluationError
    from models.evaluation.own_text import probes, too_few
    from tasks.corpus.own_sentences import parts_of

    _, parts = parts_of(config.sources(texts), config.hold_out, LeftOut())
    held_out = parts.filter(part="report")
    if asks and not probes(held_out):
        raise EvaluationError(f"{too_few(held_out)}. Or give labels.")


def check_sets(names: Sequence[str], place: Place) -> None:
    """Check names of evaluation sets: the files after `own:` or `labels:`, and the splits of declared datasets.

    Raises:
        SourceError, AssetError: A file or split does not exist; the message suggests the closest name.
    """
    from storage.assets.embedded import EMBEDDED
    from storage.datasets.registry import DATASETS
    from storage.sources import labels, own_text
    from storage.sources.sources import SourceSpec, mirrored_table

    check_texts(
        [name.removeprefix(own_text.SET_PREFIX) for name in names if name.startswith(own_text.SET_PREFIX)], place
    )
    check_files(*(name.removeprefix(labels.SET_PREFIX) for name in names if name.startswith(labels.SET_PREFIX)))
    for name in names:
        dataset, _, split = name.removeprefix(EMBEDDED).rpartition("/")
        if dataset in DATASETS:
            mirrored_table(SourceSpec(dataset=dataset, split=split), None)  # raises if there is no such split


def check_suites(names: Sequence[str]) -> None:
    """Refuse misspelt names of suites and datasets without importing the kinds of evaluation, which import Prefect.

    Names that resemble no suite and no dataset, such as protocols, are checked with the kinds.

    Raises:
        ValueError: A name is neither a suite nor a set, and resembles one.
    """
    from storage.assets.embedded import EMBEDDED
    from storage.datasets.registry import ALL, DATASETS, suites_of
    from storage.filesystem.spelling import did_you_mean
    from storage.sources import labels, own_text

    known = (*suites_of(DATASETS.values()), ALL, *DATASETS)
    for name in names:
        is_known = name.removeprefix(EMBEDDED).partition("/")[0] in known
        if is_known or name.startswith((own_text.SET_PREFIX, labels.SET_PREFIX)):
            continue
        if hint := did_you_mean(name, known):
            raise ValueError(f"unknown suite or set {name!r}.{hint} `bsl evaluate --help` lists all")


def check_files(*paths: str | None) -> None:
    """Check that paths exist and have known suffixes; None is skipped.

    Raises:
        SourceError: A path does not exist, and the message suggests the closest path; or a file's suffix is unknown.
    """
    from storage.readers.formats import format_of
    from storage.sources.paths import listed

    for path in paths:
        for file in listed(path) if path is not None else ():
            format_of(file)


def check_encoders(names: Sequence[str | None], place: Place) -> None:
    """Check names of encoders against the package, this machine and the store, without contacting the Hub.

    Args:
        names: Names as commands accept them; None is skipped.
        place: Options that name the store and the mirror.

    Raises:
        SourceError, AssetError, ArtifactMissingError: An encoder does not exist; the message suggests the closest name.
    """
    from flows.run_context import run_context_of
    from storage.artifacts.lookup import find
    from storage.sources.model_sources import check_model_name, is_made_here
    from storage.sources.word_vectors import check_vectors_name, is_vectors_file

    site = run_context_of(place.given)
    for name in filter(None, names):
        if is_made_here(name):
            find(site.open_store(), name)
        elif is_vectors_file(name):
            check_vectors_name(name)
        else:
            check_model_name(name, site.mirror)
