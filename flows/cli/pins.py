"""`bsl pins [--check | --update]`: the commits of the Hub that are read here, beside what the Hub has now."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from flows.cli.terminal.options import add_json, print_json, print_table

if TYPE_CHECKING:
    import argparse

    from flows.pins import Finding


def define_pins(parser: argparse.ArgumentParser) -> None:
    """The verb."""
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--check", action="store_true", help="ask the Hub what has changed since")
    how.add_argument("--update", action="store_true", help="write the newest commits into the source")
    add_json(parser)
    parser.set_defaults(call=_pins)


def _pins(arguments: argparse.Namespace) -> int:
    """Exit code 1 if the Hub does not give what a pin names, or a pin is missing and nothing says why."""
    from flows.pins import look, pins, unexplained, update

    known = pins()
    if not arguments.check and not arguments.update:
        if arguments.json:
            print_json([asdict(pin) for pin in known])
        else:
            rows = [_row(pin.kind, pin.name, pin.revision or "newest", pin.reason) for pin in known]
            print_table("Commits of the Hub", rows)
        return 1 if unexplained(known) else 0
    findings = [look(pin) for pin in known]
    written = {str(path): names for path, names in update(findings).items()} if arguments.update else {}
    if arguments.json:
        print_json({"pins": [asdict(finding) for finding in findings], "written": written})
    else:
        print_table("Commits of the Hub, and what they are now", [_compared(finding) for finding in findings])
        for path, names in written.items():
            print(f"written  {path}: {', '.join(names)}")
    return 1 if unexplained(known) or any(finding.verdict == "lacking" for finding in findings) else 0


def _compared(finding: Finding) -> dict[str, str]:
    commits = [(commit or "none")[:12] for commit in (finding.pin.revision, finding.newest)]
    return _row(finding.verdict, finding.pin.name, " → ".join(commits), finding.detail)


def _row(*cells: str) -> dict[str, str]:
    return dict(zip(("", "repository", "commit", "remark"), cells, strict=True))
