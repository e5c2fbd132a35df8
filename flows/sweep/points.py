"""Execute the runs of a sweep; a run that cannot be trained or scored is reported, and the others continue.

A run is one seed of a point, which is a configuration. It executes in this process, on Dask workers (of this machine,
or of a cluster) or on a work pool. This process computes the keys of the same artifacts, so the result is the same
everywhere.
"""

from __future__ import annotations

import logging
from contextlib import ExitStack, closing
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from bsl.flows.config import difference
from bsl.flows.pipeline import Run, is_fault, run, titled
from bsl.flows.recipes import recipe
from bsl.flows.recipes.shared import with_fields
from bsl.flows.run_context import fix_precision
from bsl.models.errors import ModelError, TrainingError
from bsl.models.evaluation.verdict import STOPPED
from bsl.storage.errors import SourceError
from bsl.tasks.figures import ReportFigures
from bsl.tasks.stage.cluster import ClusterError, outcomes_on_cluster
from bsl.tasks.stage.pool import run_on_pool
from bsl.tasks.stage.progress import announce, is_planning, planning, warn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bsl.flows.config import PipelineConfig
    from bsl.storage.artifacts.refs import ArtifactRef
    from bsl.tasks.reporting.sweep.system import SweepSystem
    from bsl.tasks.stage.run_context import RunContext

Outcome: TypeAlias = Run | ModelError
"""A run, or its fault."""
End: TypeAlias = "Callable[[int, Run | Exception], None]"
"""Called with the number of an ended run, and the run or its error. If it raises, the other runs are cancelled."""

logger = logging.getLogger(__name__)

_ON_POOL = 256  # maximum number of unfinished runs


@dataclass(frozen=True)
class Job:
    """The work of one run: a recipe's configuration with changes, sent to other processes and machines unchanged."""

    recipe: str
    config: PipelineConfig

    @property
    def overrides(self) -> dict[str, Any]:
        """Changes from the recipe to this configuration, for `bsl.flows.config.override`."""
        return difference(recipe(self.recipe), self.config)

    def run(self, site: RunContext) -> Run:
        """Run the configuration to its report."""
        return run(titled(self.recipe, self.config), site)

    def parameters(self, site: RunContext) -> dict[str, Any]:
        """Return the parameters of the run on a work pool, whose workers share store, mirror and kind of device.

        The other runtime settings (cache, GPU number, processes) are those of each worker.
        """
        shared = site.abroad().model_dump(mode="json", exclude_unset=True)
        return {"recipe_name": self.recipe, "overrides": self.overrides, "site": shared, "of_sweep": True}


def jobs_of(recipe: str, config: PipelineConfig, seeds: int, site: RunContext) -> list[Job]:
    """Return a job for each seed of a configuration, one if it uses none.

    `auto` precision is resolved here, so that all workers compute the same artifacts.
    """
    return [Job(recipe, seeded) for seeded in fix_precision(config, site).runs(seeds)]


def run_points(
    points: Mapping[str, Sequence[Job]], site: RunContext, workers: int | None = None
) -> dict[str, list[Outcome]]:
    """Execute the runs of all points, the first seed of all points before any second seed.

    The first run executes alone, because it makes the artifacts that all runs share.

    The site's cluster or work pool executes the runs, or `workers` processes of this machine, each of which executes
    one run at a time; None: this process executes all runs. On a pool, it is the maximum number of unfinished runs, by
    default 256.

    Returns:
        Label → outcomes of its runs.

    Raises:
        Exception: An error that is not a fault of a run (`is_fault`).
    """
    order = [(label, seed) for label, of_point in points.items() for seed in range(len(of_point))]
    order.sort(key=itemgetter(1))
    names, jobs = [f"{label}, seed {seed}" for label, seed in order], [points[label][seed] for label, seed in order]
    ended: dict[int, Outcome] = {}

    def end(number: int, outcome: Run | Exception) -> None:
        name = names[number]
        if isinstance(outcome, Run):
            announce(f"{name}: done")
        elif is_fault(outcome):
            warn("%s has no figure: %s", name, outcome)
        else:
            logger.error("%s: %s", name, outcome)
            raise outcome
        ended[number] = cast("Outcome", outcome)

    if is_planning():
        _here(site, jobs, end)
    elif site.pool:
        _on_pool(site, jobs, end, workers or _ON_POOL)
    elif site.cluster is not None or (workers is not None and workers > 1):
        _on_workers(site, jobs, names, end, workers)
    else:
        _here(site, jobs, end)
    outcomes: dict[str, list[Outcome]] = {label: [] for label in points}
    for number, (label, _) in enumerate(order):
        outcomes[label].append(ended[number])
    return outcomes


def with_runs(point: SweepSystem, outcomes: Sequence[Outcome]) -> SweepSystem:
    """Return a point with the artifacts of its runs, and the errors of failed runs."""
    runs = [outcome for outcome in outcomes if isinstance(outcome, Run)]
    faults = [f"seed {seed}: {outcome}" for seed, outcome in enumerate(outcomes) if isinstance(outcome, ModelError)]
    return with_fields(
        point,
        embeddings=tuple(run.system.embeddings for run in runs),
        scores=tuple(scores for run in runs for scores in run.scores),
        faults=tuple(faults),
    )


def unless_stopped(name: str, outcome: Outcome, site: RunContext) -> Outcome:
    """Return the outcome of a run; an error if its training was stopped, so that it reports the original encoder."""
    store = site.open_store()
    if isinstance(outcome, ModelError) or store.defect(outcome.report):  # in a dry run
        return outcome
    figures = store.manifest(outcome.report).figures_as(ReportFigures)
    if figures.verdict != STOPPED:
        return outcome
    fault = TrainingError(str(figures.reason))
    warn("%s has no figure: %s", name, fault)
    return fault


def attempt(site: RunContext, job: Job) -> Run | Exception:
    """Execute a job, possibly in another process; return the run or its error."""
    try:
        return job.run(site)
    except Exception as error:  # the process that collects the outcomes raises it with the run's name
        return error


def _here(site: RunContext, jobs: Sequence[Job], end: End) -> None:
    for number, job in enumerate(jobs):
        end(number, attempt(site, job))


def _on_workers(site: RunContext, jobs: Sequence[Job], names: Sequence[str], end: End, workers: int | None) -> None:
    """Execute the first run here, and the others on the cluster's Dask workers or on `workers` of this machine."""
    _here(site, jobs[:1], end)
    others = jobs[1:]
    if not others:
        return
    with ExitStack() as running:
        address, of_workers = site.cluster, site.abroad()
        if address is None:
            from bsl.tasks.stage.local_cluster import local_workers  # imports Dask, slowly

            address, of_workers = running.enter_context(local_workers(site, min(workers or 1, len(others))))
        calls = [(job,) for job in others]
        remote = outcomes_on_cluster(address, of_workers, attempt, calls, names[1:], ahead=False)
        for number, outcome in running.enter_context(closing(remote)):
            made = _published(site, outcome)
            end(number + 1, _expected(site, others[number], made) if site.cluster else made)


def _on_pool(site: RunContext, jobs: Sequence[Job], end: End, at_once: int) -> None:
    """Execute runs on a work pool, the first run alone; a run that fails in planning is not sent."""
    planned = [_planned(site, job) for job in jobs]
    sent = [number for number, outcome in enumerate(planned) if isinstance(outcome, Run)]
    for number in sorted({*range(len(jobs))} - {*sent}):
        end(number, planned[number])
    for batch in (sent[:1], sent[1:]):

        def end_sent(position: int, fault: ModelError | None, batch: Sequence[int] = batch) -> None:
            number = batch[position]
            end(number, fault or _published(site, planned[number]))

        run_on_pool([jobs[number].parameters(site) for number in batch], at_once, end_sent)


def _planned(site: RunContext, job: Job) -> Run | Exception:
    with planning():
        return attempt(site, job)


def _expected(site: RunContext, job: Job, outcome: Run | Exception) -> Run | Exception:
    """Return the outcome of another machine, named in an error; an error if this one would make other artifacts."""
    if isinstance(outcome, SourceError):
        return type(outcome)(f"a worker of cluster {site.cluster}: {outcome.finding}", outcome.remedy)
    planned = _planned(site, job)
    if isinstance(outcome, Run) and isinstance(planned, Run):
        for made, ref in zip(_refs(outcome), _refs(planned), strict=False):
            if made != ref:
                return ClusterError(
                    f"cluster {site.cluster}: a worker made {made} (expected {ref}). Use the same version of this "
                    "package and the same kind of device on all machines."
                )
    return outcome


def _refs(run: Run) -> tuple[ArtifactRef, ...]:
    return run.system.embeddings, *run.scores, run.report


def _published(site: RunContext, outcome: Run | Exception) -> Run | Exception:
    """Return the outcome of another process; an error if the store lacks one of its artifacts."""
    if isinstance(outcome, Exception):
        return outcome
    store = site.open_store()
    for ref in _refs(outcome):
        if defect := store.defect(ref):
            return ClusterError(
                f"a run completed, but {store.url} has no intact {ref} ({defect}). Use the same store, kind of device "
                "and version of this package for workers and this process (BSL_STORE, BSL_DEVICE)."
            )
    return outcome
