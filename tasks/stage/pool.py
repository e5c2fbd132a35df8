"""Runs of deployment `bsl-pipeline/any` on a Prefect work pool, as part of this flow run."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter
from prefect.client.schemas.objects import WorkPoolStatus
from prefect.deployments.flow_runs import arun_deployment
from prefect.exceptions import ObjectNotFound
from prefect.flow_runs import wait_for_flow_run
from prefect.runtime import flow_run
from prefect.states import Cancelling

from bsl.models.errors import ModelError
from bsl.tasks.stage.progress import is_planning, warn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from prefect.client.orchestration import PrefectClient
    from prefect.client.schemas.objects import FlowRun, WorkPool, WorkQueue


DEPLOYMENT: Final = "bsl-pipeline/any"
_POLL_S: Final = 5
_PATIENCE_S: Final = 60
NO_FIGURE: Final = "NoFigure"  # state of a completed run that could not be trained or scored; its message is why


class PoolError(ModelError):
    """A run on a pool did not finish."""


class UnscoredRunError(ModelError):
    """A run on a pool could not be trained or scored."""


def run_on_pool(orders: Sequence[dict[str, Any]], at_once: int, end: Callable[[int, ModelError | None], None]) -> None:
    """Run deployment `bsl-pipeline/any` once per order and wait; a dry run sends nothing.

    An interrupted wait, also by Ctrl-C or SIGTERM, cancels the unfinished runs.

    Args:
        orders: Parameters of each run, as JSON.
        at_once: Maximum number of unfinished runs at a time.
        end: Called with the number of each ended run, and its error or None. If it raises, no other run starts, and
            the running ones are awaited.

    Raises:
        PoolError: The deployment or its pool is missing, or the pool or its queue has no slot in addition to this run.
        Exception: The error that `end` raised.
    """
    if orders and not is_planning():
        asyncio.run(_run_all(orders, at_once, end))


async def _run_all(
    orders: Sequence[dict[str, Any]], at_once: int, end: Callable[[int, ModelError | None], None]
) -> None:
    free, broken, sent = asyncio.Semaphore(at_once), asyncio.Event(), list[UUID]()
    async with get_client() as client:
        await _check_deployment(client)

        async def run_one(number: int, order: dict[str, Any]) -> None:
            async with free:
                if broken.is_set():
                    return
                try:
                    end(number, _fault(await _run(client, order, sent)))
                except Exception:  # of any kind; it is raised below, after the points that run already have ended
                    broken.set()
                    raise

        watch = asyncio.create_task(_warn_if_none_is_taken(client, sent))
        try:
            ended = await asyncio.gather(*(run_one(*each) for each in enumerate(orders)), return_exceptions=True)
        finally:
            watch.cancel()
    for error in ended:
        if error is not None:
            raise error


async def _run(client: PrefectClient, parameters: dict[str, Any], sent: list[UUID]) -> FlowRun:
    """Send a run, add its id to `sent`, and wait."""
    run = await arun_deployment(DEPLOYMENT, client, parameters, timeout=0)
    sent.append(run.id)
    try:
        return await wait_for_flow_run(run.id, timeout=None, poll_interval=_POLL_S, client=client)
    except BaseException:
        await asyncio.shield(_cancel(client, run))
        raise


async def _warn_if_none_is_taken(client: PrefectClient, sent: Sequence[UUID]) -> None:
    """Warn after a minute if no worker took one of the runs; the server does not know the limits of workers."""
    await asyncio.sleep(_PATIENCE_S)
    runs = await client.read_flow_runs(flow_run_filter=FlowRunFilter.model_validate({"id": {"any_": list(sent)}}))
    if runs and all(run.state and run.state.is_scheduled() for run in runs):
        warn(
            "runs wait: no worker took one in %d s. A worker with --limit 1 that executes this run has no slot for "
            "them: start another worker",
            _PATIENCE_S,
        )


async def _cancel(client: PrefectClient, sent: FlowRun) -> None:
    await client.set_flow_run_state(sent.id, Cancelling(message="the run that started it has ended"))


async def _check_deployment(client: PrefectClient) -> None:
    """Refuse a missing deployment or pool, and limits without a slot in addition to this run; warn if runs wait."""
    name = DEPLOYMENT.partition("/")[2]
    deploy = f"Run `prefect --no-prompt deploy --name {name}`"
    try:
        deployment = await client.read_deployment_by_name(DEPLOYMENT)
    except ObjectNotFound as error:
        raise PoolError(f"{DEPLOYMENT}: the server has no such deployment. {deploy}") from error
    if deployment.work_pool_name is None:
        raise PoolError(f"{DEPLOYMENT}: its work pool was deleted. Make one with `prefect work-pool create`. {deploy}")
    this = await client.read_flow_run(UUID(flow_run.id)) if flow_run.id else None
    pool = await client.read_work_pool(deployment.work_pool_name)
    queue = await client.read_work_queue(deployment.work_queue_id or pool.default_queue_id)
    of_queue = f"{queue.name} --pool {pool.name}"
    _check_slots(pool, "pool", pool.name, is_here=this is not None and this.work_pool_name == pool.name)
    _check_slots(queue, "queue", of_queue, is_here=this is not None and this.work_queue_id == queue.id)
    if pool.status == WorkPoolStatus.NOT_READY:
        warn("runs wait: no worker polls pool %s. Start one: `prefect worker start --pool %s`", pool.name, pool.name)


def _check_slots(place: WorkPool | WorkQueue, kind: str, name: str, *, is_here: bool) -> None:
    """Check a pool or a queue, named as in Prefect's commands; `is_here`: this run occupies one of its slots.

    Raises:
        PoolError: It has no slot in addition to this run.
    """
    limit = place.concurrency_limit
    if limit is not None and limit <= is_here:
        occupied = ", and this run is one of them" if is_here else ""
        raise PoolError(
            f"{DEPLOYMENT}: {kind} {place.name} allows {limit} runs at a time{occupied}. Raise the limit: "
            f"`prefect work-{kind} set-concurrency-limit {name} N`"
        )
    if place.is_paused:
        warn("runs wait: %s %s is paused. Resume it: `prefect work-%s resume %s`", kind, place.name, kind, name)


def _fault(run: FlowRun) -> ModelError | None:
    """Return why an ended run has no figures; None if it has."""
    name, message = (run.state.name, run.state.message or "") if run.state else ("unknown", "")
    if run.state is None or not run.state.is_completed():
        return PoolError(
            f"run {run.name} ended as {name} (expected Completed): {message.rstrip('.')}. Its log is on the server. "
            "Run this again when the cause is gone: finished stages are cached"
        )
    return UnscoredRunError(f"run {run.name}: {message}") if name == NO_FIGURE else None
