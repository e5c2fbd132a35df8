"""What a run needs of a Prefect server, checked in seconds: an answer, versions, workers, deployments.

The command's own server has only the first, and needs no more unless pieces of a run are to go to a pool.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

from flows.pools import POOLS, find_changes
from flows.prefect_server.server import check_server
from tasks.doctor import Check
from tasks.stage.deployed import can_start
from tasks.stage.spread import DEPLOYMENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prefect.client.orchestration import SyncPrefectClient

    from tasks.site import Site


def examine_server(site: Site, recipe: str, said: str) -> list[Check]:
    """All checks of the server that PREFECT_API_URL names, or of the command's own.

    Args:
        site: where the run would happen.
        recipe: its name, which is that of its deployment.
        said: which server it is, for people.
    """
    import prefect
    from prefect.client.orchestration import get_client

    address, version = os.environ.get("PREFECT_API_URL"), prefect.__version__
    if not address:
        if site.runner != "pool":
            return [Check("server", "ok", f"prefect {version}, {said}")]
        return [Check("server", "NO", f"runner pool, {said}, without workers", "set PREFECT_API_URL to one that has")]
    try:
        found = check_server(address)
    except OSError as error:
        return [Check("server", "NO", str(error))]
    checks = [_versions(version, found, said)]
    with get_client(sync_client=True) as client:
        for found_of in (_set_up(client, site), _workers(client), _deployments(client, site, recipe)):
            try:
                checks.extend(found_of)
            except Exception as error:  # whatever a client library raises, a check is there to report it
                checks.append(Check("server", "NO", str(error) or type(error).__name__))
    return list(dict.fromkeys(checks))  # a fault that all of them meet is said once


def _versions(own: str, found: str, said: str) -> Check:
    if own == found:
        return Check("server", "ok", f"{said}, prefect {found} here and there")
    told, remedy = f"{said}: prefect {found} there, {own} here", "install one version of Prefect on both sides"
    alike = own.partition(".")[0] == found.partition(".")[0]  # else the client refuses the server
    return Check("server", "note" if alike else "NO", told, remedy)


def _set_up(client: SyncPrefectClient, site: Site) -> Iterator[Check]:
    """What `bsl pools` would change, or why it would change nothing."""
    try:
        changes = find_changes(client, webhook=os.environ.get("BSL_NOTIFY_URL") or None)
    except ValueError as error:  # a pool of another kind has the name, which ends no run outside the pools
        yield Check("pools", "NO" if site.runner == "pool" else "note", str(error))
        return
    ours = ", ".join(f"{change.subject} ({change.found})" for change in changes if change.make is not None)
    if ours:
        yield Check("pools", "note", ours, "`bsl pools` sets up pools, queues, automations and schedules")
    else:
        yield Check("pools", "ok", "pools and queues as `bsl pools` makes them")
    for change in changes:
        if change.make is None:
            yield Check(change.subject, "note", change.found, change.wanted)


def _workers(client: SyncPrefectClient) -> Iterator[Check]:
    there = {pool.name for pool in client.read_work_pools()}
    for name in [pool.name for pool in POOLS if pool.name in there]:
        if can_start(client, name):
            yield Check(f"workers of {name}", "ok", "one at least polls it")
        else:
            remedy = f"`prefect worker start --pool {name}`, or resume the pool"
            yield Check(f"workers of {name}", "note", "none polls it, or it is paused", remedy)


def _deployments(client: SyncPrefectClient, site: Site, recipe: str) -> Iterator[Check]:
    from prefect.exceptions import ObjectNotFound

    needed = site.runner == "pool"
    for name in (f"bsl-pipeline/{recipe}", *([DEPLOYMENT] if needed else [])):
        lacking: Literal["note", "NO"] = "NO" if name == DEPLOYMENT else "note"
        remedy = f"`prefect --no-prompt deploy --name {name.partition('/')[2]}`"
        try:
            pool = client.read_deployment_by_name(name).work_pool_name
        except ObjectNotFound:
            yield Check(f"deployment {name}", lacking, "the server has none", remedy)
            continue
        if pool is None:
            yield Check(f"deployment {name}", lacking, "its pool was deleted", f"`bsl pools`, then {remedy}")
        elif needed and not can_start(client, pool):
            remedy = f"`prefect worker start --pool {pool}`"
            yield Check(f"deployment {name}", "NO", f"no worker takes its runs from pool {pool}", remedy)
        else:
            yield Check(f"deployment {name}", "ok", f"its runs go to pool {pool}")
