"""A worker of a Prefect pool whose runs cost nothing to start: it does them itself, one after the other.

    python tests/bench/pool_worker.py POOL

A worker of Prefect's starts a process a run, which takes seconds, whatever the run does. Without that, what is left is
what the server, its client and our flow cost a run.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from prefect.client.orchestration import get_client
from prefect.client.schemas.responses import SetStateStatus
from prefect.flow_engine import run_flow
from prefect.states import Pending

if TYPE_CHECKING:
    from uuid import UUID

    from prefect.client.orchestration import SyncPrefectClient

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))


def work(pool: str) -> None:
    """Do what is sent to a pool, until this process is ended."""
    from flows.errands import do_errand

    with get_client(sync_client=True) as client:
        while True:
            sent = client.get_scheduled_flow_runs_for_work_pool(pool)
            for run in random.sample(sent, len(sent)):  # each worker in another order
                if is_mine(client, run.flow_run.id):
                    run_flow(do_errand, flow_run=client.read_flow_run(run.flow_run.id))
            if not sent:
                time.sleep(0.5)


def is_mine(client: SyncPrefectClient, run: UUID) -> bool:
    """Take a run, unless another worker has; the server lets none be pending twice, but one that has ended again."""
    state = client.read_flow_run(run).state
    if state is None or not state.is_scheduled():
        return False
    return client.set_flow_run_state(run, Pending()).status == SetStateStatus.ACCEPT


if __name__ == "__main__":
    work(sys.argv[1])
