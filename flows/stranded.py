"""Runs that a killed command left as Running in its folder's database: the next command ends them there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, TaskRunFilter
from prefect.states import Crashed

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from prefect.client.orchestration import SyncPrefectClient

_STARTED: Final = {"type": {"any_": ["PENDING", "RUNNING", "CANCELLING"]}}
_AT_ONCE: Final = 200
_WHY: Final = "Its process ended without a word: it was killed, or the machine went down. Run it again to go on."


def end_stranded_runs(before: datetime) -> int:
    """Mark as Crashed the runs that began before a time and have not ended.

    Args:
        before: when no run of the server's database had a process; other commands may have begun since.

    Returns:
        How many runs that were.
    """
    asked = FlowRunFilter.model_validate({"state": _STARTED, "expected_start_time": {"before_": before}})
    ended = 0
    with get_client(sync_client=True) as client:
        while runs := client.read_flow_runs(flow_run_filter=asked, limit=_AT_ONCE):
            for run in runs:
                client.set_flow_run_state(run.id, Crashed(message=_WHY), force=True)
            _end_tasks(client, [run.id for run in runs])
            ended += len(runs)
    return ended


def _end_tasks(client: SyncPrefectClient, runs: list[UUID]) -> None:
    asked = TaskRunFilter.model_validate({"state": _STARTED, "flow_run_id": {"any_": runs}})
    while tasks := client.read_task_runs(task_run_filter=asked, limit=_AT_ONCE):
        for task in tasks:
            client.set_task_run_state(task.id, Crashed(message=_WHY), force=True)
