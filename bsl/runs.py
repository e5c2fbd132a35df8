"""Recipes run, encoders adapted, scored and compared in this process, without a Prefect server.

All of them keep what they make in the store and take what is there already, as the command `bsl` does. Runtime
settings are those of the command: `store`, `mirror`, `device`, `threads` and the like, given by name, or as BSL_STORE,
BSL_DATA_MIRROR, BSL_DEVICE … in the environment.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bsl.configs import recipe
from bsl.encoder import SentenceEncoder
from flows import adaptation, comparison, pipeline
from flows.config import PipelineConfig, override
from flows.recipes.adaptation import AdaptConfig
from flows.run_context import run_context_of
from storage.artifacts.lookup import find_reports
from storage.artifacts.refs import ReportRef
from tasks.embedding import python_encoders
from tasks.evaluation import python_api
from tasks.reporting.publish import page_of
from tasks.stage.run_context import RunContext

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    import polars as pl
    from pydantic import JsonValue

    from storage.artifacts.refs import ArtifactRef
    from storage.artifacts.store import Store
    from tasks.embedding.python_encoders import TextEncoder


@dataclass(frozen=True)
class Result:
    """What a run leaves in the store.

    Attributes:
        store: Where it is.
        ref: Names the artifact; `ref.path` is how the command knows it, as in `bsl evaluate report/<key>`.
    """

    store: Store
    ref: ArtifactRef

    @property
    def page(self) -> Path:
        """The HTML page; of a store elsewhere, a copy."""
        return page_of(self.store, self.ref)

    @property
    def figures(self) -> dict[str, JsonValue]:
        """What the manifest says of it: the verdict and its reason among others."""
        return dict(self.store.manifest(self.ref).figures)

    @property
    def scores(self) -> pl.DataFrame:
        """One row a figure: model, dataset, split, metric, protocol, value, its interval and its signature."""
        return self.store.scan(self.ref, "scores").collect()

    @property
    def encoder(self) -> SentenceEncoder:
        """The encoder that it ended with.

        Raises:
            ArtifactMissingError: Nothing was trained.
        """
        from tasks.embedding.encoders import encoder_folder, find_encoder

        context = RunContext(store=self.store.url)
        return SentenceEncoder.load(encoder_folder(self.store, find_encoder(context, self.ref.path, None)))


def run(config: str | PipelineConfig, changes: Mapping[str, Any] | None = None, **settings: object) -> Result:
    """Run a recipe, from raw sentences to the report of its evaluated encoder.

    Args:
        config: A recipe's name, or a configuration from `recipe`.
        changes: Fields to change, such as `{"training": {"max_steps": 50}}`.
        **settings: Runtime settings by name.

    Raises:
        UnknownRecipeError, ValueError: As `recipe`.
        SourceError: A source, a set or a model cannot be had.
    """
    context = _context(settings)
    asked = recipe(config, changes) if isinstance(config, str) else override(config, dict(changes or {}))
    return Result(context.open_store(), pipeline.run(asked, context).report)


def adapt(
    texts: Sequence[str | Path],
    encoder: str | None = None,
    *,
    labels: str | Path | None = None,
    labels_only_judge: bool = False,
    changes: Mapping[str, Any] | None = None,
    **settings: object,
) -> Result:
    """Adapt an encoder to your text, prove that it is better there, and hand out the better one.

    Args:
        texts: Files (txt, csv, tsv, jsonl, parquet), folders, patterns with `*`, embedded data sets.
        encoder: What to start from, as `SentenceEncoder.load` takes it; the embedded one unless given.
        labels: A file of scored pairs or of classes: a part is learnt, the rest decides.
        labels_only_judge: Learn views of the text instead, and let all labels decide.
        changes: Fields of the settings to change.
        **settings: Runtime settings by name.

    Raises:
        ValueError: A setting does not exist or cannot have that value, or does not go with the labels.
        SourceError: A file cannot be read, or has too little text.
    """
    context, asked = _context(settings), override(AdaptConfig(), dict(changes or {}))
    judge = None if labels is None else str(labels)
    start, files = encoder or asked.encoder.model, [str(text) for text in texts]
    made = adaptation.run_adapt(files, start, judge, asked, context, labels_only_judge=labels_only_judge)
    return Result(context.open_store(), made)


def evaluate(
    encoder: str | TextEncoder, suite: Iterable[str] = ("sts",), *, name: str | None = None, **settings: object
) -> python_api.Evaluation:
    """Score an encoder on the papers' sets.

    Args:
        encoder: A name, as `SentenceEncoder.load` takes it; or any object with `encode(list[str]) -> array`, or a
            callable that does the same.
        suite: `sts`, `senteval`, `all`, …, or sets such as `stsb/dev` or `trec`.
        name: What signatures call it.
        **settings: Runtime settings by name.

    Returns:
        `scores`, a row a figure, and `missing`, the sets that could not be had, with the reason.

    Raises:
        UnknownSuiteError: A suite does not exist.
        SourceError: None of its sets can be had.
        EvaluationError: The vectors cannot be scored.

    Example:
        >>> found = evaluate(lambda texts: [[len(text), 1.0] for text in texts], ["embedded:stsb/test"], name="lengths")
        >>> "spearman" in found.scores["metric"]
        True
    """
    context = _context(settings)
    if isinstance(encoder, str):
        return python_api.evaluate(SentenceEncoder.load(encoder), suite, context, name=name or encoder)
    return python_api.evaluate(encoder, suite, context, name=name)


def compare(runs: Sequence[str | Result], **settings: object) -> Result:
    """Hold finished runs against the first, on the sets that all of them were scored on.

    Args:
        runs: Two or more results, keys of reports, or ids of runs.
        **settings: Runtime settings by name.

    Raises:
        StorageError: The store has none of that name, or several.
    """
    context = _context(settings)
    store = context.open_store()
    names = [one.ref.key if isinstance(one, Result) else one for one in runs]
    reports = tuple(ReportRef(key=ref.key) for ref in find_reports(store, names))
    return Result(store, comparison.compared(context, reports))


def embed_corpus(
    encoder: TextEncoder, config: str | PipelineConfig, *, name: str | None = None, **settings: object
) -> str:
    """Let an object embed the corpus that a recipe learns from; the recipe's `teacher.model` takes what it returns.

    Args:
        encoder: Has `encode(list[str]) -> array`, or is called itself; is given each sentence once.
        config: The recipe.
        name: What signatures call the object.
        **settings: Runtime settings by name.

    Returns:
        `embeddings/<key>`.

    Raises:
        SourceError: A source cannot be had.
        EvaluationError: The object gives no vector for a sentence, or one that is not finite.
    """
    ingest = (recipe(config) if isinstance(config, str) else config).ingest
    return python_encoders.embed_corpus(encoder, ingest, _context(settings), name).path


def _context(settings: Mapping[str, object]) -> RunContext:
    """Runtime settings; the environment has those that are not given."""
    for name in settings:
        if name not in RunContext.model_fields:
            near = difflib.get_close_matches(name, RunContext.model_fields, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise TypeError(f"no runtime setting {name!r}, expected {', '.join(RunContext.model_fields)}{hint}")
    return run_context_of({name: str(value) if isinstance(value, Path) else value for name, value in settings.items()})
