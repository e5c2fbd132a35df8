"""`bsl bench gpu`, `bsl bench cpu`: check and measure the card or the processor of this machine."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from flows.cli.terminal.options import add_json, print_json

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from models.bench.figures import Check, Rate


def define_bench(parser: argparse.ArgumentParser) -> None:
    """The verb."""
    parser.add_argument("what", choices=["gpu", "cpu"], help="what to measure: at most 10 and 5 minutes")
    parser.add_argument("--device", default="cuda", help="which GPU: cuda, cuda:1, … (cuda)")
    parser.add_argument("--quick", action="store_true", help="small shapes: checks count, rates mean little")
    add_json(parser)
    parser.set_defaults(call=_bench)


def _bench(arguments: argparse.Namespace) -> int:
    from tasks.diagnostics.bench import bench, described

    device = "cpu" if arguments.what == "cpu" else arguments.device
    return show_rows(described(device), bench(device, quick=arguments.quick), json=arguments.json)


def show_rows(title: str, rows: Iterable[Check | Rate], *, json: bool) -> int:
    """Each row with its figure as it comes, and the tables of what came however it ends; 1 if a check was missed."""
    from models.bench.figures import Check, as_json, markdown, spelled

    found: list[Check | Rate] = []
    try:
        for row in rows:
            found.append(row)
            print(spelled(row), file=sys.stderr, flush=True)
    finally:
        if json:
            print_json(as_json(found))
        else:
            print(markdown(title, found), flush=True)
    return 1 if any(isinstance(row, Check) and row.verdict == "MISSED" for row in found) else 0
