"""Run recipes; adapt, score and compare encoders in this process, without a Prefect server.

Like the command `bsl`, each function saves its results in the artifact store and reuses existing ones. Runtime settings
are those of the command: keyword arguments such as `store`, `mirror`, `device` and `threads`, or environment variables
such as BSL_STORE, BSL_DATA_MIRROR and BSL_DEVICE.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from bsl.configs import configured, fields_of
from bsl.flows import adaptation, comparison, pipeline
from bsl.flows.config import PipelineConfig, override
from bsl.flows.recipes.adaptation import AdaptConfig
from bsl.flows.run_context import run_context_of
from bsl.results import GivenEncoder, Result, encoders_of, listed, run_named
from bsl.storage.artifacts.lookup import find_reports
from bsl.storage.artifacts.refs import ReportRef
from bsl.storage.filesystem.spelling import did_you_mean
from bsl.storage.filesystem.values import require_name
from bsl.storage.sources.label_names import set_with_label_columns, with_label_columns
from bsl.tables import Files, is_column
from bsl.tasks.embedding import python_encoders
from bsl.tasks.evaluation import python_api
from bsl.tasks.stage.run_context import RunContext

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import polars as pl

    from bsl.models.evaluation.uses import UseName
    from bsl.tasks.embedding.python_encoders import TextEncoder


def run(config: str | PipelineConfig, changes: Mapping[str, Any] | None = None, **settings: object) -> Result:
    """Run a recipe, from raw sentences to the report of its evaluated encoder.

    Args:
        config: Name of a recipe, or a configuration from `recipe`.
        changes: Fields to change, such as `{"training": {"max_steps": 50}}`.
        **settings: Runtime settings by name.

    Raises:
        UnknownRecipeError, ValueError: As for `recipe`.
        SourceError: A source, a set or a model is not available.
    """
    context = context_of(settings)
    return Result(context.open_store(), pipeline.run(configured(config, changes), context).report)


def adapt(
    texts: object,
    encoder: str | None = None,
    *,
    labels: object = None,
    label_column: str | None = None,
    text_columns: str | Sequence[str] = (),
    document: str | None = None,
    labels_only_judge: bool = False,
    accept: bool = False,
    used_for: UseName | None = None,
    changes: Mapping[str, Any] | None = None,
    **settings: object,
) -> Result:
    """Adapt an encoder to your text, test it on held-out text, and return the better encoder.

    Args:
        texts: Files of text or tables, folders, patterns with `*`, embedded datasets; one needs no list.
            Or a table (DataFrame of pandas or Polars, Arrow table, `datasets.Dataset`), or a list or column of texts.
        encoder: Original encoder, a name that `SentenceEncoder.load` accepts; by default `embedded:mini-sentence`.
        labels: A file or table of scored pairs or of texts with a class: training uses one part, the rest decides the
            verdict. Or lists: (texts, classes), (texts, texts, scores), or the classes of the given list of texts.
        label_column: Column of the labels with classes or scores; by default guessed.
        text_columns: Text column of the labels, two for pairs; by default guessed.
        document: Column of texts or labels with the same value in all rows of a document, writer or customer; labelled
            rows with the same value are all training or all test labels.
        labels_only_judge: Train on views of the text, and use all labels for the verdict.
        accept: Without labels, export the adapted encoder, although no gain is proved.
        used_for: Use that decides the verdict: `classify`, `group`, `similarity` or `search`; by default the use that
            the labels are for. `figures["uses"]` of the result has the score of each use before and after.
        changes: Fields of the settings to change.
        **settings: Runtime settings by name.

    Raises:
        TypeError: The texts or labels are neither files nor a table nor lists.
        ValueError: A setting is unknown, has an invalid value, or conflicts with the labels.
        SourceError: A file cannot be read, or contains too little text.
    """
    chosen = {"document": document, "accept": accept or None, "used_for": used_for}
    given = {name: value for name, value in chosen.items() if value is not None}
    context, config = context_of(settings), override(AdaptConfig(), fields_of(changes), given)
    start = require_name(encoder or config.encoder.model, "the encoder")
    if labels is None and (label_column or text_columns):
        option = "label_column" if label_column else "text_columns"
        raise ValueError(f"{option}: names a column of labels, but no labels are given. Pass labels=")
    with Files() as files:
        named = files.texts(texts, labelled=is_column(labels))
        of_labels = None if labels is None else files.labels(labels, texts)
        if of_labels is not None:
            of_labels = with_label_columns(of_labels, label_column, _columns(text_columns))
        report = adaptation.run_adapt(named, start, of_labels, config, context, labels_only_judge=labels_only_judge)
    return Result(context.open_store(), report)


def evaluate(
    encoder: str | Path | Result | TextEncoder,
    suite: object = ("sts",),
    *,
    name: str | None = None,
    label_column: str | None = None,
    text_columns: str | Sequence[str] = (),
    document: str | None = None,
    **settings: object,
) -> python_api.Evaluation:
    """Score an encoder on the papers' sets.

    Args:
        encoder: A name that `SentenceEncoder.load` accepts, a result, an object with `encode(list[str]) -> array`, or
            a callable with that signature.
        suite: Suites such as `sts`, `senteval` or `all`; sets such as `stsb/dev` or `trec`; tables of labels, as for
            `adapt`; lists (texts, classes) or (texts, texts, scores). One needs no list.
        name: Name of the encoder in signatures.
        label_column: Column with classes or scores in sets `labels:FILE`; by default guessed.
        text_columns: Text column in these sets, two for pairs; by default guessed.
        document: Column in these sets with the same value in all rows of a writer or customer; the bootstrap draws
            these rows together.
        **settings: Runtime settings by name.

    Returns:
        `scores`, one score per row, and `missing`, the unavailable sets and the reason for each. A warning says how
        many rows of labels trained the encoder, if it is named or a result.

    Raises:
        UnknownSuiteError: A suite or set is unknown.
        SourceError: None of the sets is available.
        EvaluationError: The vectors cannot be scored.

    Example:
        >>> found = evaluate(lambda texts: [[len(text), 1.0] for text in texts], ["embedded:stsb/test"], name="lengths")
        >>> "spearman" in found.scores["metric"]
        True
    """
    context = context_of(settings)
    given = GivenEncoder.of(encoder, context, name)
    with Files() as files:
        sets = _sets(files, suite, label_column, text_columns, document)
        result = python_api.evaluate(given.encoder, sets, context, name=given.name)
        _warn(given.notes(sets), files)
        return replace(result, scores=files.without_folder(result.scores))


@overload
def compare(
    runs: Iterable[str | Result],
    suite: None = None,
    *,
    label_column: None = None,
    text_columns: tuple[()] = (),
    document: None = None,
    **settings: object,
) -> Result: ...


@overload
def compare(
    runs: Iterable[str | Path | Result | TextEncoder] | Mapping[str, str | Path | Result | TextEncoder],
    suite: object,
    *,
    label_column: str | None = None,
    text_columns: str | Sequence[str] = (),
    document: str | None = None,
    **settings: object,
) -> pl.DataFrame: ...


def compare(
    runs: Any,
    suite: object = None,
    *,
    label_column: str | None = None,
    text_columns: str | Sequence[str] = (),
    document: str | None = None,
    **settings: object,
) -> Result | pl.DataFrame:
    """Compare finished runs with the first, on the sets that all of them were scored on; or encoders, on any sets.

    Args:
        runs: Two or more results, keys of reports, or ids of runs. With a suite: encoders, as for `evaluate`, or
            results; a dictionary gives them names.
        suite: Sets to compare encoders on, as for `evaluate`: names, tables of labels, or lists.
        label_column: Column with classes or scores in tables and sets `labels:FILE`; by default guessed.
        text_columns: Text column in these sets, two for pairs; by default guessed.
        document: Column in these sets with the same value in all rows of a writer or customer.
        **settings: Runtime settings by name.

    Returns:
        The page of the compared runs. With a suite, a table with one row for each set and encoder after the first: the
        difference (`value`), its 95 % interval (`ci_low`, `ci_high`) and `p_value`, with Holm's correction for several.

    Raises:
        StorageError: A name matches no run in the store, or several.
        UnknownSuiteError, SourceError: A set is unknown, or none is available.
        EvaluationError: Less than two encoders are given, or vectors cannot be scored.

    Example:
        >>> longer = {"characters": lambda texts: [[len(text), 1.0] for text in texts],
        ...           "words": lambda texts: [[len(text.split()), 1.0] for text in texts]}
        >>> compare(longer, "embedded:stsb/test")["model"].to_list()
        ['words']
    """
    context = context_of(settings)
    if suite is not None:
        with Files() as files:
            sets, encoders = _sets(files, suite, label_column, text_columns, document), encoders_of(runs, context)
            found = python_api.compare({one.name: one.encoder for one in encoders}, sets, context)
            _warn([note for one in encoders for note in one.notes(sets)], files)
            return files.without_folder(found)
    store = context.open_store()
    names = [run_named(run) for run in listed(runs)]
    reports = tuple(ReportRef(key=ref.key) for ref in find_reports(store, names))
    return Result(store, comparison.compared(context, reports))


def embed_corpus(
    encoder: TextEncoder, config: str | PipelineConfig, *, name: str | None = None, **settings: object
) -> str:
    """Embed a recipe's training corpus with a Python object, as the teacher of a distillation.

    Args:
        encoder: An object with `encode(list[str]) -> array`, or a callable; it receives each sentence once.
        config: Name of a recipe, or a configuration from `recipe`.
        name: Name of the object in signatures.
        **settings: Runtime settings by name.

    Returns:
        `embeddings/<key>`, a valid value of `teacher.model`.

    Raises:
        SourceError: A source is not available.
        EvaluationError: The object returns no vector for a sentence, or a vector that is not finite.
    """
    return python_encoders.embed_corpus(encoder, configured(config).ingest, context_of(settings), name).path


def context_of(settings: Mapping[str, object]) -> RunContext:
    """Return the run context; the environment provides the fields that are not given."""
    for name in settings:
        if name not in RunContext.model_fields:
            hint = did_you_mean(name, RunContext.model_fields)
            raise TypeError(f"unknown runtime setting {name!r}.{hint} Settings: {', '.join(RunContext.model_fields)}")
    given = {name: str(value) if isinstance(value, Path) else value for name, value in settings.items()}
    context = run_context_of(given)
    context.check_mirror()
    return context


def _sets(
    files: Files, suite: object, label_column: str | None, text_columns: str | Sequence[str], document: str | None
) -> list[str]:
    """Return the names of sets; tables and lists are written to files."""
    columns = _columns(text_columns)
    return [set_with_label_columns(one, label_column, columns, document) for one in files.suite(suite)]


def _columns(names: str | Sequence[str]) -> Sequence[str]:
    return (names,) if isinstance(names, str) else names


def _warn(notes: Iterable[str], files: Files) -> None:
    for note in notes:
        warnings.warn(files.without_folder_in(note), stacklevel=3)  # the line of the caller
