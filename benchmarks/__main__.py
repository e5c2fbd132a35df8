"""Check and measure a GPU or a processor: parity, rates, share of its limits. Exit code 1 if a check failed."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from benchmarks.device.bench import bench, described
from benchmarks.device.results import Rate, markdown, spelled
from bsl.flows.cli.terminal.printing import print_json
from bsl.tasks.diagnostics.finding import Finding, exit_code

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the device and print its rows; return 1 if a check failed, and 2 for an unknown device."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("what", choices=("gpu", "cpu"), help="at most 10 minutes for a GPU, 5 for a CPU")
    parser.add_argument("--device", default="cuda", help="GPU to measure: cuda, cuda:1 … [default: cuda]")
    parser.add_argument("--quick", action="store_true", help="small shapes: the checks are valid, the rates are not")
    parser.add_argument("--json", action="store_true", help="print only the result, as one JSON value")
    wanted = parser.parse_args(argv)
    device = "cpu" if wanted.what == "cpu" else wanted.device
    try:
        title = described(device)
    except ValueError as error:
        parser.error(str(error))
    return show_rows(title, bench(device, quick=wanted.quick), json=wanted.json)


def show_rows(title: str, rows: Iterable[Finding | Rate], *, json: bool) -> int:
    """Print each row when it is measured, and the tables at the end or after an error; return 1 if a check failed."""
    found: list[Finding | Rate] = []
    try:
        for row in rows:
            found.append(row)
            print(spelled(row), file=sys.stderr, flush=True)
    finally:
        if json:
            print_json([asdict(row) for row in found])
        else:
            print(markdown(title, found), flush=True)
    return exit_code(row for row in found if isinstance(row, Finding))


if __name__ == "__main__":
    sys.exit(main())
