"""Runs that a killed command left as Running in its folder's database: the next command says how they ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, TaskRunFilter
from prefect.states import Crashed

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient

_STARTED: Final = {"type": {"any_": ["PENDING", "RUNNING", "CANCELLING"]}}
_AT_ONCE: Final = 200
_WHY: Final = "Its process ended without a word: it was killed, or the machine went down. Run it again to go on."


def end_stranded_runs() -> int:
    """Write down as crashed what has not ended; call it where no run of the server's database has a process.

    Returns:
        How many runs that were.
    """
    ended = 0
    with get_client(sync_client=True) as client:
        while runs := client.read_flow_runs(
            flow_run_filter=FlowRunFilter.model_validate({"state": _STARTED}), limit=_AT_ONCE
        ):
            for run in runs:
                client.set_flow_run_state(run.id, Crashed(message=_WHY), force=True)
            ended += len(runs)
        if ended:
            _end_tasks(client)
    return ended


def _end_tasks(client: SyncPrefectClient) -> None:
    while tasks := client.read_task_runs(
        task_run_filter=TaskRunFilter.model_validate({"state": _STARTED}), limit=_AT_ONCE
    ):
        for task in tasks:
            client.set_task_run_state(task.id, Crashed(message=_WHY), force=True)
