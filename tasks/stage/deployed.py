"""Runs of a deployment on a Prefect work pool, for which this process waits."""

from __future__ import annotations

import logging
import re
import time
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter
from prefect.client.schemas.objects import TERMINAL_STATES, WorkPoolStatus
from prefect.exceptions import ObjectNotFound
from prefect.runtime import flow_run
from prefect.states import Cancelling

from models.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from threading import Event

    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import FlowRun
    from prefect.client.schemas.responses import DeploymentResponse

logger = logging.getLogger(__name__)

_SECONDS: Final = 2.0  # between two looks at runs of minutes or hours
_AT_ONCE: Final = 4096  # runs that wait or work: several for each of a thousand workers
_ANSWERED: Final = 200  # runs that the server tells of at a time
_SECONDS_TO_BEGIN: Final = 10.0  # before it is asked whether anybody takes the runs
_SECONDS_BETWEEN_WARNINGS: Final = 60.0
_RAISED: Final = re.compile(r"^Flow run encountered an exception: (\w+)")  # Prefect 3.8.8, flow_engine.py


class PoolError(ModelError):
    """A run on a pool did not finish, or left nothing where this process looks for it."""


class FailedRunError(PoolError):
    """A run on a pool failed by an error of its own: it was neither killed nor cancelled.

    Attributes:
        kind: the error's class, without its module; empty where the server does not say it.
    """

    def __init__(self, text: str, kind: str = "") -> None:
        self.kind = kind
        super().__init__(text)


@dataclass(frozen=True)
class Wanted:
    """A run that is wanted.

    Attributes:
        parameters: of the deployment's flow.
        title: what it does, for people.
    """

    parameters: Mapping[str, Any]
    title: str


def run_deployed(name: str, wanted: Sequence[Wanted], off: Event | None = None) -> list[str]:
    """Run a deployment to its end, once for each wanted run, on whichever workers take the runs from its pool.

    Whatever ends the wait, Ctrl-C and SIGTERM included, cancels the runs that have not ended.

    Args:
        name: `<flow>/<deployment>`.
        wanted: The runs; thousands may be under way at a time.
        off: Set by another thread when nobody waits any more: signals reach the main thread alone.

    Returns:
        The runs' names, in their order.

    Raises:
        PoolError: There is no such deployment, it has no pool or one without room beside this run, or a run did not
            finish (`FailedRunError` if an error of its own ended it); those sent before it are then waited for.
    """
    to_send: Iterator[tuple[int, Wanted]] = enumerate(wanted)
    waiting: dict[UUID, int] = {}
    ended: dict[int, FlowRun] = {}
    with get_client(sync_client=True) as client:
        deployment = _found(client, name)
        watch = _Watch(client, _pool_with_room(client, deployment))
        try:
            while len(ended) < len(wanted):
                for number, run_wanted in islice(to_send, _AT_ONCE - len(waiting)):
                    sent = client.create_flow_run_from_deployment(deployment.id, parameters=dict(run_wanted.parameters))
                    waiting[sent.id] = number
                for run in _ended(client, list(waiting)):
                    ended[waiting.pop(run.id)] = run
                if not all(map(_is_completed, ended.values())):
                    to_send = iter(())  # what was sent is waited for, since it needs what this process lends
                    if not waiting:
                        break
                watch.look(len(waiting))
                _pause(_SECONDS if waiting else 0, off)
        finally:
            _call_off(client, name, list(waiting))
    return [_completed(ended[number], wanted[number].title) for number in sorted(ended)]


def require_deployments(names: Sequence[str]) -> None:
    """Check that the server has some deployments, before anything is sent to one.

    Raises:
        PoolError: it lacks one.
    """
    with get_client(sync_client=True) as client:
        for name in names:
            _found(client, name)


def can_start(client: SyncPrefectClient, pool: str) -> bool:
    """Whether a worker polls a pool that is not paused."""
    return client.read_work_pool(pool).status == WorkPoolStatus.READY


class _Watch:
    """Warns that nobody takes the runs: after some seconds, then once a minute."""

    def __init__(self, client: SyncPrefectClient, pool: str) -> None:
        self._client, self._pool = client, pool
        self._due = time.monotonic() + _SECONDS_TO_BEGIN

    def look(self, waiting: int) -> None:
        if not waiting or time.monotonic() < self._due:
            return
        self._due = time.monotonic() + _SECONDS_BETWEEN_WARNINGS
        if not can_start(self._client, self._pool):
            logger.warning(
                "%d runs wait, and no worker polls pool %s, or it is paused; start one with `prefect worker start "
                "--pool %s`, or resume it",
                waiting,
                self._pool,
                self._pool,
            )


def _pause(seconds: float, off: Event | None) -> None:
    if off is None:
        time.sleep(seconds)
    elif off.wait(seconds):
        raise PoolError("called off: this process was told to end; run again to go on")


def _call_off(client: SyncPrefectClient, name: str, waiting: Sequence[UUID]) -> None:
    """Cancel runs that nobody waits for any more; the last first, since workers take the first."""
    if not waiting:
        return
    try:
        for run in reversed(waiting):
            client.set_flow_run_state(run, Cancelling(message="the run that wanted it has ended"))
    except Exception as error:  # what ended the wait is raised, and this said beside it
        logger.warning("%s: of %d runs some are not cancelled (%s); cancel them in the UI", name, len(waiting), error)
    else:
        logger.warning("%s: %d runs are cancelled", name, len(waiting))


def _found(client: SyncPrefectClient, name: str) -> DeploymentResponse:
    try:
        return client.read_deployment_by_name(name)
    except ObjectNotFound as error:
        known = name.partition("/")[2]
        raise PoolError(
            f"{name}: the server has no such deployment; run `prefect --no-prompt deploy --name {known}`"
        ) from error


def _pool_with_room(client: SyncPrefectClient, deployment: DeploymentResponse) -> str:
    """The pool of a deployment, which has room beside this run: runs of it would otherwise wait for ever."""
    pool = deployment.work_pool_name
    if pool is None:
        raise PoolError(
            f"{deployment.name}: the deployment has no pool any more, so nobody would ever take its runs; make the "
            f"pool with `docker/server-setup.sh`, then run `prefect --no-prompt deploy --name {deployment.name}`"
        )
    own = client.read_flow_run(UUID(flow_run.id)).work_pool_name if flow_run.id else None
    limit = client.read_work_pool(pool).concurrency_limit
    if limit is not None and limit <= (own == pool):
        raise PoolError(
            f"{deployment.name}: pool {pool} takes {limit} runs at a time and this run is one of them, so it would "
            f"wait for ever; raise its limit (`prefect work-pool set-concurrency-limit {pool} N`) and start workers"
        )
    return pool


def _ended(client: SyncPrefectClient, waiting: Sequence[UUID]) -> Iterator[FlowRun]:
    ends = {"type": {"any_": sorted(state.value for state in TERMINAL_STATES)}}
    for start in range(0, len(waiting), _ANSWERED):
        some = {"any_": waiting[start : start + _ANSWERED]}
        asked = FlowRunFilter.model_validate({"id": some, "state": ends})
        yield from client.read_flow_runs(flow_run_filter=asked, limit=_ANSWERED)


def _is_completed(run: FlowRun) -> bool:
    return run.state is not None and run.state.is_completed()


def _completed(run: FlowRun, title: str) -> str:
    if not _is_completed(run):
        name, message = (run.state.name, run.state.message) if run.state else ("unknown", "")
        text = (
            f"{title}: run {run.name} ended as {name}, expected Completed: {message}; see its log on the server, and "
            "run again to go on"
        )
        if run.state is None or not run.state.is_failed():
            raise PoolError(text)
        said = _RAISED.search(message or "")
        raise FailedRunError(text, said[1] if said else "")
    return run.name
