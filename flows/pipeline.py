"""Pipeline from raw sentences to an evaluated encoder: one line for each artifact, in the order of the data."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from prefect import State
from prefect.runtime import flow_run
from prefect.states import Completed

from bsl.flows.checked_flow import flow, run_prefix
from bsl.flows.config import PipelineConfig, override
from bsl.flows.evaluation import differences, frozen_scores, run_systems
from bsl.flows.forms import form_of
from bsl.flows.own_text import own_text
from bsl.flows.recipes import RecipeName, recipe
from bsl.flows.run_context import Site, announce_precision, command_of, run_context_of
from bsl.models.errors import InterruptedRunError, ModelError, TranslationStoppedError
from bsl.models.views.pairs import OWN_LABELS
from bsl.storage.artifacts.refs import CheckpointRef, ReportRef
from bsl.storage.sources.model_sources import ResolvedModel
from bsl.tasks.corpus.evaluation_sets import resolve_scored_set
from bsl.tasks.corpus.ingest import ingest, labelled_sources, locate_sources, nli
from bsl.tasks.embedding.encoders import check_learns, resolve
from bsl.tasks.evaluation.kinds import FoundSets, available, frozen_names, tables
from bsl.tasks.evaluation.systems import NamedEncoder
from bsl.tasks.reporting.card import NO_CARD, base_card
from bsl.tasks.reporting.evaluation import Missing
from bsl.tasks.reporting.provenance import RunCommand
from bsl.tasks.reporting.run.content import ReportContent, RunArtifacts
from bsl.tasks.reporting.run.report import report
from bsl.tasks.stage.cluster import ClusterError
from bsl.tasks.stage.log_context import show_logs
from bsl.tasks.stage.pool import NO_FIGURE, PoolError
from bsl.tasks.training.distributed import require_equal_shares
from bsl.tasks.training.teachers import check_teaching, find_teachers, teacher_vectors
from bsl.tasks.training.train import check_objectives, train
from bsl.tasks.views.augment import augment, find_routes
from bsl.tasks.views.methods import column_view, sources_with
from bsl.tasks.views.pairs import pairs_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from bsl.storage.artifacts.refs import ScoresRef
    from bsl.storage.sources.sources import ResolvedSource
    from bsl.tasks.evaluation.systems import System
    from bsl.tasks.stage.run_context import RunContext

    Overrides = dict[str, Any]
else:
    Overrides = form_of(
        PipelineConfig, first=("ingest", "encoder", "training", "augment", "pairs", "evaluation", "transform")
    )
"""Changes of a recipe, as a parameter of flows."""
_END_SWEEP: Final = (InterruptedRunError, TranslationStoppedError, PoolError, ClusterError)


def _run_name() -> str:
    """Return the recipe, the corpus and the start of the run's id."""
    given = flow_run.parameters
    config = recipe(given["recipe_name"])
    with suppress(ValueError):  # the flow raises it again, and Prefect records a failed run
        config = override(config, given.get("overrides") or {})
    corpus = " + ".join(str(source.dataset or source.path) for source in config.ingest.sources)
    return f"{given['recipe_name']} on {corpus[:60]} · {run_prefix()}"


@flow(name="bsl-pipeline", flow_run_name=_run_name)
def pipeline(
    recipe_name: RecipeName, overrides: Overrides | None = None, site: Site | None = None, of_sweep: bool = False
) -> ReportRef | State[ReportRef]:
    """Run a recipe, from raw sentences to the report of its evaluated encoder.

    Args:
        recipe_name: A recipe of a published row, or one of the project's own; `bsl recipes` describes them.
        overrides: Fields of the recipe to change, such as `{"training": {"lr": 0.0003}}`; a field left at None has
            the recipe's value.
        site: Store, mirror and device that replace the worker's BSL_STORE, BSL_DATA_MIRROR and BSL_DEVICE.
        of_sweep: End the run as Completed, named NoFigure and with the reason, if it cannot be trained or scored; by
            default it fails.
    """
    show_logs()
    changes = overrides or {}
    config, context = titled(recipe_name, override(recipe(recipe_name), changes)), run_context_of(site)
    command = command_of("run", [recipe_name], {}, changes)
    announce_precision(context, config.precisions)
    try:
        return run(config, context, command).report
    except ModelError as error:
        if of_sweep and is_fault(error):
            return Completed(name=NO_FIGURE, message=str(error))
        raise


def titled(recipe_name: str, config: PipelineConfig) -> PipelineConfig:
    """Return a changed recipe; if its title no longer describes it, with a title that says what is trained on what.

    The title is in the report's key and on the model card, so a run has the same one in a sweep, here or on a pool.
    """
    base = recipe(recipe_name)
    if config.title != base.title or _described(config) == _described(base):
        return config
    objectives = ", then ".join(phase.training.objective.label for phase in config.phases)
    sources = ", ".join(dict.fromkeys(source.dataset or "own files" for source in config.ingest.sources))
    made = f"{objectives} on {sources}" if objectives else "no training"
    return config.model_copy(update={"title": f"{recipe_name}, changed: {made}"})


def _described(config: PipelineConfig) -> tuple[object, ...]:
    """Return what titles of recipes describe: the sentences, the encoder and the trainings."""
    return (
        [source.address for source in config.ingest.sources],
        config.encoder.model,
        [phase.training.objective.label for phase in config.phases],
    )


def is_fault(error: BaseException) -> bool:
    """Return whether an error is a fault of the run, such as a diverged training; other errors end a sweep."""
    return isinstance(error, ModelError) and not isinstance(error, _END_SWEEP)


def _check_columns(config: PipelineConfig, sources: Sequence[ResolvedSource]) -> None:
    """Check, before the corpus is made, that the sources have the columns of views and labels.

    Raises:
        SourceError: No source has them.
    """
    for view in config.augment.given if config.phases else ():
        sources_with(sources, view)
    if config.needs_labels:
        labelled_sources(sources)


@dataclass(frozen=True)
class Run:
    """Result of a run.

    Attributes:
        report: Its report.
        system: The last trained encoder, or the untrained encoder, after the transform if there is one. If the
            transform is fitted on each dataset separately, this is the system of the last dataset.
        scores: All scores of that system.
    """

    report: ReportRef
    system: System
    scores: tuple[ScoresRef, ...]


def run(config: PipelineConfig, site: RunContext, command: str = "") -> Run:
    """Run the whole pipeline; inside a flow run, each line is a task run. Its report prints `command`."""
    resolved = resolve(site, config.encoder, config.words)
    start, encoder = resolved.encoder, resolved.config
    if config.phases:
        check_learns(start)
    found = available(site, frozen_names(config.evaluation.sets))
    dev = resolve_scored_set(site, config.evaluation.dev) if config.phases and config.evaluation.dev else None
    # A missing set or model, or an uneven batch, raises now, not after hours of translation and training.
    for scored in config.scored:
        resolve_scored_set(site, scored)
    for phase in config.phases:
        require_equal_shares(phase.training, site.processes)
    teachers = [find_teachers(site, phase.teachers) for phase in config.phases]
    routes = find_routes(site, config.augment) if config.phases else ()

    own = own_text(site, config.ingest)
    sources = () if own else locate_sources(site, config.ingest)
    if not any(source.hub for source in sources):  # whose columns are read from files that a finished run may lack
        _check_columns(config, sources)
    corpus = own.corpus if own else ingest(site, sources, config.ingest)
    if own:
        found = FoundSets({**own.sets, **found.sets}, found.missing)
    for phase, found_teachers in zip(config.phases, teachers, strict=True):
        check_teaching(site, corpus, found_teachers, phase.training.objective)
    labelled = nli(site, sources, corpus, config.ingest) if config.needs_labels else None
    views = None
    if config.phases:
        bad_share, columns = config.ingest.max_bad_share, config.augment.given
        given = tuple(column_view(site, sources, corpus, view, bad_share) for view in columns)
        # Not earlier: it loads the encoder, which a run with all stages cached does not need.
        fits = partial(check_objectives, site, start, encoder, [phase.training for phase in config.phases])
        views = augment(site, corpus, config.augment, labelled, given, routes, fits)
    pairs = [
        own.label_pairs(site, phase.training)
        if own and phase.pairs.scored == OWN_LABELS
        else pairs_of(site, corpus, views, labelled, phase.pairs)
        for phase in config.phases
        if views
    ]
    checkpoints: list[CheckpointRef] = []
    for phase, training_pairs, found_teachers in zip(config.phases, pairs, teachers, strict=True):
        teacher = teacher_vectors(site, corpus, found_teachers, config.evaluation.precision)
        last = checkpoints[-1] if checkpoints else start
        checkpoints.append(train(site, training_pairs, last, dev, encoder, phase.training, teacher))

    networks = zip(config.systems, [start, *checkpoints], strict=True)
    candidates = [NamedEncoder(label=label, encoder=network, config=encoder) for label, network in networks]
    tfidf, *systems = run_systems(site, corpus, candidates, found, config)
    scores = [frozen_scores(site, system, found, config.evaluation) for system in (tfidf, *systems)]
    gains = differences(site, systems[0], systems[1:], found, config.evaluation)
    artifacts = RunArtifacts(
        corpus=corpus,
        views=views,
        pairs=tuple(pairs),
        checkpoints=tuple(checkpoints),
        folded=tuple(system.folded for system in systems if system.folded),
        scores=tuple(ref for refs in scores for ref in refs),
        comparisons=gains,
        vectors={system.label: system.embeddings for system in (tfidf, *systems) if system.datasets is None},
        sets=found.scored,
    )
    settings = ReportContent(
        title=config.title,
        missing=Missing.of(found.missing),
        tables=tables(),
        published=config.published,
        settings=config.settings,
        sources=config.ingest.sources,
        base=base_card(start.described) if isinstance(start, ResolvedModel) else NO_CARD,
    )
    page = report(site, artifacts, settings, RunCommand(command=command))
    # A transform fitted on each dataset gives several systems with the same label.
    by_system = zip((tfidf, *systems), scores, strict=True)
    last_scores = tuple(ref for system, refs in by_system if system.label == systems[-1].label for ref in refs)
    return Run(page, systems[-1], last_scores)
