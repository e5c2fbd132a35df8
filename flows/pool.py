"""A configuration as a run of its recipe's deployment on a Prefect work pool, elsewhere than in this process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from prefect.deployments import run_deployment

from flows.pipeline import Run, run
from flows.recipes import recipe
from storage.address import shown
from storage.keys import canonical

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prefect.client.schemas.objects import FlowRun

    from flows.config import PipelineConfig
    from storage.refs import ReportRef
    from storage.store import Store
    from tasks.site import Site

_SECONDS: Final = 2.0  # between two looks at a run that lasts minutes or hours


class PoolError(RuntimeError):
    """A run on the pool did not finish, or left its report where this process does not see it."""


@dataclass(frozen=True)
class Job:
    """A recipe's configuration with a person's changes.

    Attributes:
        recipe: its name, which is that of the deployment.
        config: the configuration.
    """

    recipe: str
    config: PipelineConfig

    @property
    def overrides(self) -> dict[str, Any]:
        """What `flows.config.override` makes the configuration of, from the recipe's."""
        return _changes(recipe(self.recipe).model_dump(mode="json"), self.config.model_dump(mode="json"))


def run_on_pool(job: Job, given: Site | None, place: Site) -> Run:
    """Run `bsl-pipeline/<recipe>` to its end, and take what it left in the store.

    The pool needs room for the run beside the flow that waits for it.

    Args:
        job: what to run.
        given: the site as a person gave it; workers complete it from their own environment.
        place: where this process finds the store that the workers publish to.

    Raises:
        PoolError: the run did not finish, or the store of this process does not have its report.
    """
    parameters = {"recipe_name": job.recipe, "overrides": job.overrides}
    if given is not None:
        parameters["site"] = given.model_dump(mode="json", exclude_unset=True)
    name = f"bsl-pipeline/{job.recipe}"
    flow_run = cast("FlowRun", run_deployment(name, parameters=parameters, poll_interval=_SECONDS))
    state = flow_run.state
    if state is None or not state.is_completed():
        raise PoolError(
            f"{name}: run {flow_run.name} ended as {state.name if state else 'unknown'}, expected Completed: "
            f"{state.message if state else ''}; see its log on the server, and start the sweep again to go on"
        )
    store = place.open_store()
    if _report_of(store, job.config) is None:
        raise PoolError(
            f"{name}: run {flow_run.name} finished, but {shown(store.url)} has no report of it; give the workers and "
            "this flow one store (BSL_STORE) and one version of this package"
        )
    return run(job.config, place)  # of which every stage is there


def _report_of(store: Store, config: PipelineConfig) -> ReportRef | None:
    settings = canonical(config.settings)
    whole = (ref for ref in store.refs("report") if store.defect(ref) is None)
    return next((ref for ref in whole if store.manifest(ref).provenance.config.get("settings") == settings), None)


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
