"""States of runs that did not finish: Crashed after kill -9, Cancelled after Ctrl-C or SIGTERM.

Prefect marks every run ended by a signal as Crashed, but a command stopped by its user has not crashed. Runs on a work
pool keep Prefect's states: there users cancel in the UI, and SIGTERM means that the machine shuts down.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, TaskRunFilter
from prefect.exceptions import TerminationSignal
from prefect.states import Cancelled, Crashed

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from prefect import Flow
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import FlowRun, State

_STARTED: Final = {"type": {"any_": ["PENDING", "RUNNING", "CANCELLING"]}}
_PAGE: Final = 200  # runs per request
_KILLED: Final = "The process was killed, or the machine went down. Run it again to resume."
_STOPPED: Final = "Stopped by the user. Run it again to resume."


def end_crashed_runs(before: datetime) -> int:
    """Mark as Crashed the runs that began before a time and have not ended; return their number.

    At that time no run in the server's database had a process; other commands may have started since.
    """
    unfinished = FlowRunFilter.model_validate({"state": _STARTED, "expected_start_time": {"before_": before}})
    ended = 0
    with get_client(sync_client=True) as client:
        while runs := client.read_flow_runs(flow_run_filter=unfinished, limit=_PAGE):
            for run in runs:
                client.set_flow_run_state(run.id, Crashed(message=_KILLED), force=True)
            _end_tasks(client, [run.id for run in runs], Crashed(message=_KILLED))
            ended += len(runs)
    return ended


def cancelled_when_stopped(flow: Flow[..., Any]) -> Flow[..., Any]:
    """Return a copy of a command's flow whose run becomes Cancelled, not Crashed, after Ctrl-C or SIGTERM."""
    return flow.with_options(on_crashed=[*flow.on_crashed_hooks, _cancel_if_stopped])


def _cancel_if_stopped(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:  # noqa: ARG001 - names are Prefect's
    if not isinstance(state.data, KeyboardInterrupt | TerminationSignal):
        return
    if isinstance(state.data, TerminationSignal):  # Prefect then ends the process by the signal, without an exception
        sys.stderr.write("bsl: terminated. Finished stages are cached; run the command again to resume\n")
    with get_client(sync_client=True) as client:
        client.set_flow_run_state(flow_run.id, Cancelled(message=_STOPPED), force=True)
        _end_tasks(client, [flow_run.id], Cancelled(message=_STOPPED))


def _end_tasks(client: SyncPrefectClient, runs: list[UUID], state: State[Any]) -> None:
    unfinished = TaskRunFilter.model_validate({"state": _STARTED, "flow_run_id": {"any_": runs}})
    while tasks := client.read_task_runs(task_run_filter=unfinished, limit=_PAGE):
        for task in tasks:
            client.set_task_run_state(task.id, state, force=True)
