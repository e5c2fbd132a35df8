"""`bsl bench gpu`, `bsl bench cpu`: check and measure the card or the processor of this machine."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from flows.cli.options import add_json, print_json

if TYPE_CHECKING:
    import argparse


def define_bench(parser: argparse.ArgumentParser) -> None:
    """The verb."""
    parser.add_argument("what", choices=["gpu", "cpu"], help="what to measure")
    parser.add_argument("--device", default="cuda", help="which GPU: cuda, cuda:1, … (cuda)")
    parser.add_argument("--quick", action="store_true", help="small shapes: checks count, rates mean little")
    add_json(parser)
    parser.set_defaults(call=_bench)


def _bench(arguments: argparse.Namespace) -> int:
    from models.bench.figures import Check, as_json, markdown
    from tasks.bench import bench, described

    device = "cpu" if arguments.what == "cpu" else arguments.device
    title = described(device)
    rows = []
    for row in bench(device, quick=arguments.quick):
        rows.append(row)
        print(f"{row.name}", file=sys.stderr, flush=True)
    if arguments.json:
        print_json(as_json(rows))
    else:
        print(markdown(title, rows))
    return 1 if any(isinstance(row, Check) and row.verdict == "MISSED" for row in rows) else 0
