"""A run of a deployment on a Prefect work pool, for which this process waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from prefect.deployments import run_deployment
from prefect.exceptions import ObjectNotFound

from models.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prefect.client.schemas.objects import FlowRun

_SECONDS: Final = 2.0  # between two looks at a run of minutes or hours


class PoolError(ModelError):
    """A run on a pool did not finish, or left nothing where this process looks for it."""


def run_deployed(name: str, parameters: Mapping[str, Any], title: str = "") -> str:
    """Have a deployment run to its end by whoever takes it from its pool.

    The pool needs room for the run beside the one that waits for it.

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
        flow_run = cast("FlowRun", run_deployment(name, parameters=dict(parameters), poll_interval=_SECONDS))
    except ObjectNotFound as error:
        known = name.partition("/")[2]
        raise PoolError(f"{name}: the server has no such deployment; run `prefect deploy --name {known}`") from error
    state = flow_run.state
    if state is None or not state.is_completed():
        raise PoolError(
            f"{title or name}: run {flow_run.name} ended as {state.name if state else 'unknown'}, expected Completed: "
            f"{state.message if state else ''}; see its log on the server, and run again to go on"
        )
    return flow_run.name
