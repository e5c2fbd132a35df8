"""`bsl doctor RECIPE`: will this run find everything it needs? `bsl bench gpu|cpu`: parity and rates of a device."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.table import Table

from flows.cli.terminal.log_lines import be_quiet
from flows.cli.terminal.options import add_json, add_settings, add_site_options, print_json
from flows.cli.terminal.overrides import configured
from flows.prefect_server.server import check_server, use_server
from flows.run_context import run_context_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence

    from tasks.diagnostics.benchmark.results import Check as BenchCheck
    from tasks.diagnostics.benchmark.results import Rate
    from tasks.diagnostics.doctor import Check

_DIGEST: Final = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{28,}\b")  # of which a person needs the beginning


def define_doctor(parser: argparse.ArgumentParser) -> None:
    """The verb."""
    parser.add_argument("recipe", nargs="?", default="tiny", metavar="RECIPE", help="that is to be run (tiny)")
    add_settings(parser, "such as training.lr=3e-4")
    add_json(parser)
    add_site_options(parser)
    parser.set_defaults(call=_doctor)


def _doctor(arguments: argparse.Namespace) -> int:
    server = use_server()
    if not arguments.debug:
        be_quiet()
    site = run_context_of(vars(arguments))
    config = configured(arguments.recipe, arguments.set)
    from tasks.diagnostics.doctor import examine

    checks = [*examine(site, config, config.models()), *_server_checks(server)]
    if arguments.json:
        print_json([asdict(check) for check in checks])
    else:
        _tell(arguments.recipe, checks)
    return 1 if any(check.verdict == "NO" for check in checks) else 0


def _server_checks(server: str) -> list[Check]:
    """Check that the server of PREFECT_API_URL answers and that its work pool has a worker."""
    import prefect

    from tasks.diagnostics.doctor import Check, look_at_pool

    own = f"prefect {prefect.__version__}"
    address = os.environ.get("PREFECT_API_URL")
    if not address:
        return [Check("server", "ok", f"{own}, {server}")]
    try:
        version = check_server(address)
    except OSError as error:
        return [Check("server", "NO", str(error))]
    return [Check("server", "ok", f"{server}, prefect {version}; here {own}"), look_at_pool()]


def _tell(recipe: str, checks: Sequence[Check]) -> None:
    table = Table(title=f"recipe {recipe}")
    for name in ("", "subject", "found"):
        table.add_column(name, overflow="fold")
    for check in checks:
        table.add_row(check.verdict, check.subject, _DIGEST.sub(r"\1…", check.found))
    console = Console() if sys.stdout.isatty() else Console(width=110)
    console.print(table)
    for remedy in dict.fromkeys(check.remedy for check in checks if check.remedy):
        console.print(f"• {remedy}", markup=False, highlight=False, soft_wrap=True)


def define_bench(parser: argparse.ArgumentParser) -> None:
    """The verb."""
    parser.add_argument("what", choices=["gpu", "cpu"], help="what to measure: at most 10 and 5 minutes")
    parser.add_argument("--device", default="cuda", help="which GPU: cuda, cuda:1, … (cuda)")
    parser.add_argument("--quick", action="store_true", help="small shapes: checks count, rates mean little")
    add_json(parser)
    parser.set_defaults(call=_bench)


def _bench(arguments: argparse.Namespace) -> int:
    from tasks.diagnostics.benchmark.bench import bench, described

    device = "cpu" if arguments.what == "cpu" else arguments.device
    return show_rows(described(device), bench(device, quick=arguments.quick), json=arguments.json)


def show_rows(title: str, rows: Iterable[BenchCheck | Rate], *, json: bool) -> int:
    """Each row with its figure as it comes, and the tables of what came however it ends; 1 if a check was missed."""
    from tasks.diagnostics.benchmark.results import Check as BenchCheck
    from tasks.diagnostics.benchmark.results import as_json, markdown, spelled

    found: list[BenchCheck | Rate] = []
    try:
        for row in rows:
            found.append(row)
            print(spelled(row), file=sys.stderr, flush=True)
    finally:
        if json:
            print_json(as_json(found))
        else:
            print(markdown(title, found), flush=True)
    return 1 if any(isinstance(row, BenchCheck) and row.verdict == "MISSED" for row in found) else 0
