"""`bsl pools`: make a Prefect server ready for this package's deployments, showing first what would change."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from flows.cli.options import add_json, print_json, print_table
from flows.prefect_server.server import check_server, named_server

if TYPE_CHECKING:
    import argparse

    from flows.changes import Change


def define_pools(parser: argparse.ArgumentParser) -> None:
    """The verb."""
    parser.add_argument("--dry-run", action="store_true", help="show what would change, and change nothing")
    parser.add_argument(
        "--limit", action="append", default=[], metavar="POOL=RUNS", help="such as gpu=4 for four GPUs; repeat for more"
    )
    add_json(parser)
    parser.set_defaults(call=_pools)


def _pools(arguments: argparse.Namespace) -> int:
    limits = _limits(arguments.limit)
    address = named_server()
    if not address:
        raise ValueError(
            "PREFECT_API_URL names no server, and this command's own ends with it; start one "
            "(`prefect server start`) and set the variable to its address, such as http://127.0.0.1:4200/api"
        )
    from prefect.client.orchestration import get_client

    from flows.pools import find_changes

    check_server(address)
    with get_client(sync_client=True) as client:
        changes = find_changes(client, limits, os.environ.get("BSL_NOTIFY_URL") or None)
        todo = [change.make for change in changes if change.make is not None]
        if not arguments.dry_run:
            for make in todo:
                make(client)
    _tell(changes, len(todo), arguments)
    return 0


def _tell(changes: list[Change], ours: int, arguments: argparse.Namespace) -> None:
    if arguments.json:
        print_json([{**_row(change), "ours": change.make is not None} for change in changes])
        return
    if changes:
        rows = [{"": "•" if change.make is None else "+", **_row(change)} for change in changes]
        print_table("what differs; what is marked • is yours to do", rows)
    done = "to change" if arguments.dry_run else "changed"
    print(f"{ours} {done}" if ours else "nothing to change")


def _row(change: Change) -> dict[str, str]:
    return {"subject": change.subject, "found": change.found, "wanted": change.wanted}


def _limits(options: list[str]) -> dict[str, int]:
    """Pool → runs at a time.

    Raises:
        ValueError: an option has another form.
    """
    limits = {}
    for option in options:
        name, _, number = option.partition("=")
        if not number.isdecimal():
            raise ValueError(f"--limit {option}: expected POOL=RUNS, such as gpu=4")
        limits[name] = int(number)
    return limits
