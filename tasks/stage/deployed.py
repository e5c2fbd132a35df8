"""A run of a deployment on a Prefect work pool, for which this process waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.deployments import run_deployment
from prefect.exceptions import ObjectNotFound
from prefect.runtime import flow_run

from models.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prefect.client.schemas.objects import FlowRun

_SECONDS: Final = 2.0  # between two looks at a run of minutes or hours


class PoolError(ModelError):
    """A run on a pool did not finish, or left nothing where this process looks for it."""


def require_room(name: str) -> None:
    """See that a deployment's pool takes a run beside this one, which would else wait for it for ever.

    Args:
        name: `<flow>/<deployment>`.

    Raises:
        PoolError: there is no such deployment, or its pool takes one run at a time, which is this one.
    """
    with get_client(sync_client=True) as client:
        try:
            pool = client.read_deployment_by_name(name).work_pool_name
        except ObjectNotFound as error:
            raise _unknown(name) from error
        own = client.read_flow_run(UUID(flow_run.id)).work_pool_name if flow_run.id else None
        limit = client.read_work_pool(pool).concurrency_limit if pool else None
    if limit is not None and limit <= (own == pool):
        raise PoolError(
            f"{name}: pool {pool} takes {limit} runs at a time and this run is one of them, so it would wait for ever; "
            f"give the pool room for more with `bsl pools --limit {pool}=N`, and workers that take them"
        )


def run_deployed(name: str, parameters: Mapping[str, Any], title: str = "") -> str:
    """Have a deployment run to its end by whoever takes it from its pool.

    Args:
        name: `<flow>/<deployment>`.
        parameters: of the flow.
        title: what the run does, for the message; the deployment's name unless given.

    Returns:
        The run's name.

    Raises:
        PoolError: there is no such deployment, or its run did not finish.
    """
    try:
        run = cast("FlowRun", run_deployment(name, parameters=dict(parameters), poll_interval=_SECONDS))
    except ObjectNotFound as error:
        raise _unknown(name) from error
    state = run.state
    if state is None or not state.is_completed():
        raise PoolError(
            f"{title or name}: run {run.name} ended as {state.name if state else 'unknown'}, expected Completed: "
            f"{state.message if state else ''}; see its log on the server, and run again to go on"
        )
    return run.name


def _unknown(name: str) -> PoolError:
    known = name.partition("/")[2]
    return PoolError(f"{name}: the server has no such deployment; run `prefect deploy --name {known}`")
