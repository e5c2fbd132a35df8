"""Checks of names that a command was given, before anything slow is imported and before a run starts."""

from __future__ import annotations

from os.path import getsize, isfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bsl.models.corpus.passages import HoldOutConfig
    from bsl.storage.sources.labels import LabelSource
    from bsl.storage.sources.own_text import TextSource
    from bsl.tasks.stage.run_context import RunContext

_SMALL_BYTES: Final = 1 << 16  # text files up to this size are read before a run


def check_amount(sources: Sequence[TextSource], hold_out: HoldOutConfig, labels: LabelSource | None) -> None:
    """Check that small files have enough sentences to hold some out, before a server starts; runs check all texts.

    Args:
        sources: Sources of text; only local files are checked.
        hold_out: Settings of the parts.
        labels: Labels; without them, questions about the text are needed.

    Raises:
        EmptyCorpusError, EvaluationError: There are too few sentences.
        SourceError: A file cannot be read as text.
    """
    files = [file for source in sources for file in source.files]
    if not all(map(isfile, files)) or sum(map(getsize, files)) > _SMALL_BYTES:
        return
    from bsl.models.corpus.labels import OR_LABELS
    from bsl.models.corpus.passages import LeftOut
    from bsl.models.errors import EvaluationError
    from bsl.models.evaluation.own_text import retrieval_questions, too_few
    from bsl.tasks.corpus.own_sentences import parts_of

    left_out = LeftOut()
    _, parts = parts_of(tuple(sources), hold_out, left_out)
    held_out = parts.filter(part="report")
    if labels is None and not retrieval_questions(held_out):
        raise EvaluationError(f"{too_few(held_out, left_out.summary(hold_out))}. {OR_LABELS}")


def check_sets(names: Sequence[str], site: RunContext) -> None:
    """Check names of suites and sets, without the kinds of evaluation, which import Prefect.

    Args:
        names: Suites, sets, `own:` and `labels:` with files.
        site: Run context with the mirror, which may have a dataset.

    Raises:
        SourceError, AssetError: A file or split does not exist; the message suggests the closest name.
        ValueError: A name is neither a suite nor a set; the message suggests the closest name.
    """
    from bsl.storage.assets.embedded import EMBEDDED
    from bsl.storage.datasets.registry import DATASETS
    from bsl.storage.filesystem.spelling import did_you_mean
    from bsl.storage.sources import labels, own_text
    from bsl.storage.sources.label_names import label_file
    from bsl.storage.sources.sources import SourceSpec, mirrored_table

    known = _known_sets()
    for name in names:
        dataset, _, split = name.removeprefix(EMBEDDED).partition("/")
        if name.startswith(own_text.SET_PREFIX):
            own_text.check_named(name.removeprefix(own_text.SET_PREFIX), site.mirror)
        elif name.startswith(labels.SET_PREFIX):
            check_files(label_file(name.removeprefix(labels.SET_PREFIX)).path)
        elif dataset not in known:
            raise ValueError(
                f"unknown suite or set {name!r}.{did_you_mean(name, known)} `bsl evaluate --help` lists all"
            )
        elif split and dataset in DATASETS:
            mirrored_table(SourceSpec(dataset=dataset, split=split), None)  # raises if there is no such split


def check_files(*paths: str) -> None:
    """Check that paths exist and have known suffixes.

    Raises:
        SourceError: A path does not exist, and the message suggests the closest path; or a file's suffix is unknown.
    """
    from bsl.storage.readers.formats import format_of
    from bsl.storage.sources.paths import listed

    for path in paths:
        for file in listed(path):
            format_of(file)


def check_one_file(path: str) -> None:
    """Check that a path is one file with a known suffix, for commands whose result has the rows of a file.

    Raises:
        SourceError: As for `check_files`, or it is a folder or a pattern; the message names a file in it.
    """
    from bsl.storage.errors import SourceError
    from bsl.storage.readers.formats import format_of
    from bsl.storage.sources.paths import listed

    files = listed(path)
    if files != (path,):
        kind = "is a folder" if Path(path).is_dir() else "is a pattern or folder"
        raise SourceError(
            f"{path}: {kind} (found {len(files):,} readable {'files' if len(files) > 1 else 'file'}, expected the name "
            f"of one file). Name one of them, such as {files[0]}"
        )
    format_of(path)


def check_new_file(target: Path, source: str) -> None:
    """Check that the file for a result does not exist; the advice never costs a file that the command reads.

    Args:
        target: The file.
        source: File, folder or pattern that the command reads.

    Raises:
        FileExistsError: It exists.
        SourceError, ValueError: As for `check_files`, if it exists.
    """
    if not target.exists():
        return
    if target.is_dir():
        raise FileExistsError(f"{target}: is a folder, expected a new file. Name one, such as {target / target.name}")
    from bsl.storage.sources.paths import listed

    files = (Path(file.removeprefix("file://")) for file in listed(source))
    if any(file.is_file() and file.samefile(target) for file in files):
        other = target.with_stem(f"{target.stem}-result")
        raise FileExistsError(
            f"{target}: is also the input, and nothing is overwritten (expected another name for the result). Name a "
            f"new file, such as {other}"
        )
    raise FileExistsError(f"{target}: already exists. Name a new file, or delete this one.")


def check_inputs(texts: Sequence[str], labels: str | None, site: RunContext) -> None:
    """Check that files or datasets of text and a file of labels exist, without reading or fetching them.

    Args:
        texts: Files, folders, patterns or datasets.
        labels: File of labels, whose name may contain columns; None without one.
        site: Run context with the mirror, which may have a dataset.

    Raises:
        SourceError, AssetError: A name does not exist; the message suggests the closest name.
        ValueError: The columns in the name of the labels are malformed.
    """
    from bsl.storage.sources.label_names import label_file
    from bsl.storage.sources.own_text import check_named

    for name in texts:
        check_named(name, site.mirror)
    if labels is not None:
        check_files(label_file(labels).path)


def check_encoders(names: Sequence[str | None], site: RunContext) -> None:
    """Check names of encoders against the package, this machine and the store, without contacting the Hub.

    Args:
        names: Names as commands accept them; None is skipped.
        site: Run context with the store and the mirror.

    Raises:
        SourceError, AssetError, ArtifactMissingError: An encoder does not exist; the message suggests the closest name.
    """
    from bsl.storage.artifacts.lookup import find
    from bsl.storage.sources.model_sources import check_model_name, is_made_here
    from bsl.storage.sources.word_vectors import check_vectors_name, is_vectors_file

    for name in (name for name in names if name is not None):
        if is_made_here(name):
            find(site.open_store(), name)
        elif is_vectors_file(name):
            check_vectors_name(name)
        elif name in _known_sets() and not Path(name).exists():
            raise ValueError(f"{name} is an evaluation set, expected an encoder. Score on it with --suite {name}")
        else:
            check_model_name(name, site.mirror)


def _known_sets() -> tuple[str, ...]:
    """Return the names of all suites and sets."""
    from bsl.storage.datasets.registry import ALL, DATASETS, OTHER_SETS, suites_of

    return (*suites_of(DATASETS.values()), ALL, *DATASETS, *OTHER_SETS)
