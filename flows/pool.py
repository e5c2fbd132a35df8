"""A configuration as a run of its recipe's deployment on a Prefect work pool, in another process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flows.config import override
from flows.recipes import recipe
from storage.address import shown
from tasks.stage.deployed import PoolError, Wanted, run_deployed
from tasks.stage.machine import cores
from tasks.stage.watch import is_planning

if TYPE_CHECKING:
    from collections.abc import Mapping
    from threading import Event

    from flows.config import PipelineConfig
    from flows.pipeline import Run
    from tasks.site import Site


@dataclass(frozen=True)
class Job:
    """A recipe's configuration with a person's changes.

    Attributes:
        recipe: its name, which is that of the deployment.
        config: the configuration.
    """

    recipe: str
    config: PipelineConfig

    @classmethod
    def of(cls, name: str, overrides: Mapping[str, Any]) -> Job:
        """The job of which these are the overrides."""
        return cls(name, override(recipe(name), overrides))

    @property
    def overrides(self) -> dict[str, Any]:
        """The changes by which `flows.config.override` makes this configuration of the recipe's."""
        return _changes(recipe(self.recipe).model_dump(mode="json"), self.config.model_dump(mode="json"))


def asked_of(job: Job, site: Site) -> dict[str, Any]:
    """The parameters of a job's run on a pool, whose workers share store, mirror and kind of device with this machine.

    The rest of the site (cache, number of the GPU, processes, a meeting of machines) is each worker's own.
    """
    abroad = site.abroad(cores()).model_dump(mode="json", exclude_unset=True)
    return {"recipe_name": job.recipe, "overrides": job.overrides, "site": abroad}


def deployment_of(job: Job) -> str:
    """What a job is a run of, as `<flow>/<deployment>`."""
    return f"bsl-pipeline/{job.recipe}"


def run_on_pool(job: Job, planned: Run, site: Site, off: Event) -> Run:
    """Run `bsl-pipeline/<recipe>` to its end, and see that it left in the store what was planned.

    Args:
        job: what to run.
        planned: what the run makes, as this process reckons it.
        site: where this process runs, of which workers take what all machines share (`asked_of`).
        off: set by another thread, it cancels the run.

    Returns:
        `planned`, of which all is there unless this run is only planned itself.

    Raises:
        PoolError: there is no such deployment, its run did not finish, or the store lacks what was planned.
    """
    if is_planning():
        return planned
    name = deployment_of(job)
    (finished,) = run_deployed(name, [Wanted(asked_of(job, site), name)], off)
    store = site.open_store()
    for ref in (planned.report, planned.system.embeddings, *planned.scores):
        if defect := store.defect(ref):
            raise PoolError(
                f"{name}: run {finished} finished, but {shown(store.url)} has no whole {ref} ({defect}); give the "
                "workers and this flow one store, kind of device and version of this package (BSL_STORE, BSL_DEVICE)"
            )
    return planned


def _changes(base: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Fields that differ; of sections of one kind the fields within."""
    changes: dict[str, Any] = {}
    for name, value in wanted.items():
        before = base.get(name)
        if isinstance(value, dict) and isinstance(before, dict) and value.get("name") == before.get("name"):
            if inner := _changes(before, value):
                changes[name] = inner
        elif value != before:
            changes[name] = value
    return changes
