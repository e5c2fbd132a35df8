"""Pipeline from raw sentences to an evaluated encoder: one line for each artifact, in the order of the data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prefect import flow
from prefect.runtime import flow_run

from flows.config import Overrides, PipelineConfig, override
from flows.evaluation import differences, frozen_scores, run_systems
from flows.recipes import RecipeName, recipe
from flows.run_context import Site, announce_precision, command_of, computed, fix_precision, run_context_of
from storage.artifacts.refs import CheckpointRef, ReportRef
from tasks.corpus.evaluation_sets import resolve_scored_set
from tasks.corpus.ingest import ingest, locate_sources, nli
from tasks.embedding.encoders import check_learns, resolve_encoder, with_saved_settings
from tasks.evaluation.kinds import available, frozen_names, tables
from tasks.evaluation.systems import NamedEncoder
from tasks.reporting.evaluation import Missing
from tasks.reporting.provenance import RunCommand
from tasks.reporting.run.content import ReportContent, RunArtifacts
from tasks.reporting.run.report import report
from tasks.stage.log_context import show_logs
from tasks.training.distributed import require_equal_shares
from tasks.training.teachers import check_teaching, find_teachers, teach
from tasks.training.train import train
from tasks.views.augment import augment
from tasks.views.methods import column_view
from tasks.views.pairs import pairs_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from storage.artifacts.refs import ScoresRef
    from tasks.evaluation.systems import System
    from tasks.stage.run_context import RunContext


def _run_name() -> str:
    """Return the recipe, the corpus and the start of the run's id."""
    given = flow_run.parameters
    config = recipe(given["recipe_name"])
    with suppress(ValueError):  # the flow raises it again, and Prefect records a failed run
        config = override(config, given.get("overrides") or {})
    corpus = " + ".join(str(source.dataset or source.path) for source in config.ingest.sources)
    return f"{given['recipe_name']} on {corpus[:60]} · {str(flow_run.id)[:8]}"


@flow(name="bsl-pipeline", flow_run_name=_run_name)
def pipeline(recipe_name: RecipeName, overrides: Overrides | None = None, site: Site | None = None) -> ReportRef:
    """Run a recipe, from raw sentences to the report of its evaluated encoder.

    Args:
        recipe_name: A recipe of a published row, or one of the project's own; `bsl recipes` describes them.
        overrides: Fields of the recipe to change, such as `{"training": {"lr": 0.0003}}`; a field left at None has
            the recipe's value.
        site: Store, mirror and device that replace the worker's BSL_STORE, BSL_DATA_MIRROR and BSL_DEVICE.
    """
    show_logs()
    changes = overrides or {}
    config, context = override(recipe(recipe_name), changes), run_context_of(site)
    command = command_of("run", [recipe_name], {}, list(changed_settings(changes)))
    announce_precision(context, config.precisions)
    return run(config, context, command).report


def changed_settings(changes: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield nested changes as arguments of `--set`; `prefix` is the outer section, such as `training.`."""
    for name, value in changes.items():
        if isinstance(value, Mapping) and value:
            yield from changed_settings(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}={value if isinstance(value, str) else json.dumps(value, default=str)}"


@dataclass(frozen=True)
class Run:
    """Result of a run.

    Attributes:
        report: The report.
        system: The last trained encoder, or the untrained encoder, after the transform if there is one. If the
            transform is fitted on each dataset separately, this is the system of the last dataset.
        scores: All scores of that system.
    """

    report: ReportRef
    system: System
    scores: tuple[ScoresRef, ...]


def run(config: PipelineConfig, site: RunContext, command: str = "") -> Run:
    """Run the whole pipeline; inside a flow run, each line is a task run.

    Args:
        config: All settings that decide the result, and the report's title.
        site: Store, mirror and device.
        command: The command that repeats the run, printed in the report.
    """
    config = fix_precision(config, site)
    start, named = resolve_encoder(site, config.encoder, config.words)
    encoder = with_saved_settings(site, start, named)
    if config.phases:
        check_learns(start)
    found = available(site, frozen_names(config.evaluation.sets))
    dev = resolve_scored_set(site, config.evaluation.dev) if config.phases and config.evaluation.dev else None
    # A missing set or an uneven batch raises now, not after hours of translation and training.
    for scored in config.scored:
        resolve_scored_set(site, scored)
    for phase in config.phases:
        require_equal_shares(phase.training, site.processes)
    teachers = [find_teachers(site, phase.teachers) for phase in config.phases]

    sources = locate_sources(site, config.ingest)
    corpus = ingest(site, sources, config.ingest)
    for phase, found_teachers in zip(config.phases, teachers, strict=True):
        check_teaching(site, corpus, found_teachers, phase.training.objective)
    labelled = nli(site, sources, corpus, config.ingest) if config.needs_labels else None
    views = None
    if config.phases:
        bad_share, columns = config.ingest.max_bad_share, config.augment.given
        given = tuple(column_view(site, sources, corpus, view, bad_share) for view in columns)
        views = augment(site, corpus, config.augment, labelled, given)
    pairs = [pairs_of(site, corpus, views, labelled, phase.pairs) for phase in config.phases if views]
    checkpoints: list[CheckpointRef] = []
    for phase, training_pairs, found_teachers in zip(config.phases, pairs, teachers, strict=True):
        teacher = teach(site, corpus, found_teachers, computed(config.evaluation.precision, site))
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
    )
    page = report(site, artifacts, settings, RunCommand(command=command))
    # A transform fitted on each dataset gives several systems with the same label.
    by_system = zip((tfidf, *systems), scores, strict=True)
    last_scores = tuple(ref for system, refs in by_system if system.label == systems[-1].label for ref in refs)
    return Run(page, systems[-1], last_scores)
