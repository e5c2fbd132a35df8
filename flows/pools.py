"""What a Prefect server needs for this package: pools with queues, automations, schedules, as a table.

`bsl pools` compares the table with a server and changes what differs, so that calling it again changes nothing. What
a person set otherwise stays where the table has no say: the limit of a pool that has one, whether a schedule or an
automation is switched off, other variables of a pool's runs.

Design choices
- Two pools, one for each kind of machine. A GPU takes one process: a worker a GPU, started with `--limit 1`, whose slot
  goes with the worker's process; a limit that the server keeps would outlive a worker that is killed with -9.
- What runs need of Prefect's settings comes by the pool's job template, not by each worker's environment, where one
  would be forgotten.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from flows.automations import automation_changes
from flows.changes import Change
from flows.prefect_server.server import HEARTBEAT_SECONDS, RUN_SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import WorkPool, WorkQueue


@dataclass(frozen=True)
class Queue:
    """A queue of a pool.

    Attributes:
        name: what a deployment's `work_queue_name` says.
        priority: 1 is served first.
        purpose: for people.
    """

    name: str
    priority: int
    purpose: str


@dataclass(frozen=True)
class Pool:
    """A work pool of processes.

    Attributes:
        name: what a deployment's `work_pool.name` says.
        limit: runs at a time, unless the pool has a limit already.
        purpose: for people.
    """

    name: str
    limit: int
    purpose: str


@dataclass(frozen=True)
class Schedule:
    """A deployment's regular run; prefect.yaml has the same."""

    deployment: str
    slug: str
    cron: str
    timezone: str


POOLS: Final = (
    Pool("gpu", 1, "translation, training, embedding; one worker a GPU, each with --limit 1"),
    Pool("cpu", 4, "ingest, pairs, scores, reports"),
)
QUEUES: Final = (  # of each pool
    Queue("urgent", 1, "before all others"),
    Queue("default", 2, "what deployments take"),
    Queue("background", 3, "while nothing else waits"),
)
SCHEDULES: Final = (Schedule("bsl-pipeline/nli", "weekly", "0 2 * * 0", "UTC"),)


def find_changes(
    client: SyncPrefectClient, limits: Mapping[str, int] | None = None, webhook: str | None = None
) -> list[Change]:
    """What differs between the table and a server; nothing is changed.

    Args:
        client: of the server.
        limits: pool → runs at a time, where that is to change.
        webhook: address that is told of failed runs; None keeps the one that is there.

    Raises:
        ValueError: a limit names no pool of the table, or is below 1.
    """
    wanted = dict(limits or {})
    names = [pool.name for pool in POOLS]
    for name, limit in wanted.items():
        if name not in names or limit < 1:
            raise ValueError(f"limit {name}={limit}: expected one of {', '.join(names)}, and 1 or more")
    there = {pool.name: pool for pool in client.read_work_pools()}
    return [
        *(change for pool in POOLS for change in _pool(client, pool, there.get(pool.name), wanted.get(pool.name))),
        *automation_changes(client, webhook),
        *(change for schedule in SCHEDULES for change in _schedule(client, schedule)),
    ]


def _pool(client: SyncPrefectClient, pool: Pool, there: WorkPool | None, limit: int | None) -> Iterator[Change]:
    from prefect.client.schemas.actions import WorkPoolCreate, WorkPoolUpdate
    from prefect.workers.process import ProcessWorker

    subject = f"pool {pool.name}"
    if there is None:
        template = _with_variables(ProcessWorker.get_default_base_job_template())
        new = WorkPoolCreate(
            name=pool.name,
            type=ProcessWorker.type,
            description=pool.purpose,
            base_job_template=template,
            concurrency_limit=limit or pool.limit,
        )
        text = f"type {new.type}, limit {new.concurrency_limit}, heartbeats every {HEARTBEAT_SECONDS} s"
        yield Change(subject, "missing", text, lambda server: server.create_work_pool(new))
        yield from _queues(pool, ())
        return
    if there.type != ProcessWorker.type:
        raise ValueError(
            f"{subject}: its type is {there.type}, expected {ProcessWorker.type}; prefect.yaml's runs are processes in "
            "the project's folder. Rename the other pool, or run your own deployments on it"
        )
    target = limit or there.concurrency_limit or pool.limit
    if target != there.concurrency_limit:
        limited = WorkPoolUpdate(concurrency_limit=target)
        yield Change(
            subject,
            f"limit {there.concurrency_limit or 'none'}",
            f"limit {target}",
            lambda server: server.update_work_pool(pool.name, limited),
        )
    if not _variables(there.base_job_template).items() >= RUN_SETTINGS.items():
        beating = WorkPoolUpdate(base_job_template=_with_variables(there.base_job_template))
        yield Change(
            subject,
            "its runs lack variables",
            ", ".join(f"{name}={value}" for name, value in RUN_SETTINGS.items()),
            lambda server: server.update_work_pool(pool.name, beating),
        )
    yield from _queues(pool, client.read_work_queues(pool.name))


def _queues(pool: Pool, there: list[WorkQueue] | tuple[()]) -> Iterator[Change]:
    found = {queue.name: queue.priority for queue in there}
    for queue in QUEUES:
        if found.get(queue.name) == queue.priority:
            continue
        state = f"priority {found[queue.name]}" if queue.name in found else "missing"

        def make(server: SyncPrefectClient, queue: Queue = queue) -> None:
            _set_queue(server, pool.name, queue)

        yield Change(f"queue {pool.name}/{queue.name}", state, f"priority {queue.priority}, {queue.purpose}", make)


def _set_queue(server: SyncPrefectClient, pool: str, queue: Queue) -> None:
    """A new pool has its queue `default` already; a queue that is inserted pushes back those behind it."""
    there = {other.name: other for other in server.read_work_queues(pool)}
    if queue.name in there:
        server.update_work_queue(there[queue.name].id, priority=queue.priority)
    else:
        server.create_work_queue(queue.name, description=queue.purpose, priority=queue.priority, work_pool_name=pool)


def _schedule(client: SyncPrefectClient, schedule: Schedule) -> Iterator[Change]:
    from prefect.client.schemas.actions import DeploymentScheduleCreate
    from prefect.client.schemas.schedules import CronSchedule
    from prefect.exceptions import ObjectNotFound

    subject = f"schedule {schedule.deployment} {schedule.slug}"
    text = f"{schedule.cron} {schedule.timezone}"
    try:
        deployment = client.read_deployment_by_name(schedule.deployment)
    except ObjectNotFound:
        name = schedule.deployment.partition("/")[2]
        yield Change(subject, "its deployment is missing", f"{text}: run `prefect deploy --name {name}`, which sets it")
        return
    wanted = CronSchedule(cron=schedule.cron, timezone=schedule.timezone)
    there = next((there for there in deployment.schedules if there.slug == schedule.slug), None)
    if there is None:
        new = DeploymentScheduleCreate(schedule=wanted, slug=schedule.slug, active=True)
        yield Change(subject, "missing", text, lambda server: server.create_deployment_schedules(deployment.id, [new]))
    elif there.schedule != wanted:
        yield Change(
            subject,
            f"{there.schedule}",
            text,
            lambda server: server.update_deployment_schedule(deployment.id, there.id, schedule=wanted),
        )


def _variables(template: Mapping[str, Any]) -> dict[str, str]:
    return dict(template.get("variables", {}).get("properties", {}).get("env", {}).get("default") or {})


def _with_variables(template: Mapping[str, Any]) -> dict[str, Any]:
    """A job template whose runs have our variables beside those that they had."""
    from prefect.workers.process import ProcessWorker

    changed = deepcopy(dict(template)) or ProcessWorker.get_default_base_job_template()
    changed["variables"]["properties"]["env"]["default"] = {**_variables(changed), **RUN_SETTINGS}
    return changed
