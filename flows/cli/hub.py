"""`bsl mirror FOLDER [NAME …]`: what machines without the Hub need; `bsl pins`: commits of the Hub that are read."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from flows.cli.terminal.options import add_json, add_settings, print_json, print_table
from flows.cli.terminal.overrides import configured
from flows.run_context import run_context_of
from storage.datasets.registry import DATASETS
from storage.errors import StorageError
from storage.sources.mirror import MODEL, Mirror
from storage.sources.set_names import perhaps_meant
from storage.sources.sources import SourceSpec

if TYPE_CHECKING:
    from flows.hub import Finding

RECIPE: Final = "recipe:"


def define_mirror(parser: argparse.ArgumentParser) -> None:
    """The verb."""
    parser.add_argument(
        "folder", type=_folder, metavar="FOLDER", help="HF_HOME of the machines that use it; created or completed"
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"{RECIPE}<recipe>: all that it reads, but your own files, which are named; <set>, <set>/<split>, "
        "<hub id>[@<revision>][/<split>] or "
        f"{MODEL}<hub id>[@<revision>], by default as a recipe pins it, else the newest; every declared set (default)",
    )
    add_settings(parser, "a change to those recipes")
    parser.add_argument("--mirror", help="folder of your own files; what it has is not fetched (BSL_DATA_MIRROR)")
    add_json(parser)
    parser.set_defaults(call=_mirror)


def _folder(text: str) -> Path:
    if "://" in text:
        raise argparse.ArgumentTypeError(f"{text} is no folder of this machine; fill a folder and copy it there")
    return Path(text)


def _mirror(arguments: argparse.Namespace) -> int:
    """Fetch everything that the Hub has; exit code 1 if something is lacking."""
    site = run_context_of(vars(arguments))
    mirror = Mirror(arguments.folder, site.mirror)
    lacking: dict[str, str] = {}
    own = _own(arguments.names, arguments.set)
    got: dict[str, str] = {}
    for wanted in _wanted(arguments.names, arguments.set):
        name = f"{wanted.dataset}/{wanted.split or 'train'}" if isinstance(wanted, SourceSpec) else wanted
        try:
            for file, outcome in mirror.add(wanted):
                got[str(file)] = outcome
                if not arguments.json:
                    print(f"{outcome:<8} {file}")
        except StorageError as error:
            lacking[name] = f"{error}{perhaps_meant(name)}"
            print(f"lacking  {name}: {lacking[name]}", file=sys.stderr)
    if arguments.json:
        print_json({"files": got, "lacking": lacking, "yours": own})
    for name in [] if arguments.json else own:
        print(f"yours    {name}")
    if got and not arguments.json:
        print(f"elsewhere: HF_HOME={arguments.folder} HF_HUB_OFFLINE=1")
    return 1 if lacking else 0


def _wanted(names: list[str], settings: list[str]) -> list[str | SourceSpec]:
    """What the names stand for, each once; every split of every declared set without names."""
    if not names:
        return [f"{declared.name}/{split}" for declared in DATASETS.values() for split in declared.splits]
    wanted: list[str | SourceSpec] = []
    for name in names:
        if name.startswith(RECIPE):
            from flows.hub import needed

            wanted += needed(configured(name.removeprefix(RECIPE), settings))
        else:
            wanted.append(_pinned(name))
    return list(dict.fromkeys(wanted))


def _own(names: list[str], settings: list[str]) -> list[str]:
    """What the named recipes read of a person's own, each once."""
    from flows.recipes.listing import own_files

    recipes = [configured(name.removeprefix(RECIPE), settings) for name in names if name.startswith(RECIPE)]
    return list(dict.fromkeys(file for config in recipes for file in own_files(config)))


def _pinned(name: str) -> str:
    """A model's name with the revision that a recipe pins, unless it has one."""
    if not name.startswith(MODEL) or "@" in name:
        return name
    from flows.recipes import RECIPES

    pins = dict(model for make in RECIPES.values() for model in make().models())
    revision = pins.get(name.removeprefix(MODEL))
    return f"{name}@{revision}" if revision else name


def define_pins(parser: argparse.ArgumentParser) -> None:
    """The verb."""
    parser.add_argument("--check", action="store_true", help="ask the Hub what has changed since")
    add_json(parser)
    parser.set_defaults(call=_pins)


def _pins(arguments: argparse.Namespace) -> int:
    """Exit code 1 if the Hub does not give what a pin names, or a pin is missing and nothing says why."""
    from flows.hub import look, pins, unexplained

    known = pins()
    if not arguments.check:
        if arguments.json:
            print_json([asdict(pin) for pin in known])
        else:
            rows = [_row(pin.kind, pin.name, pin.revision or "newest", pin.reason) for pin in known]
            print_table("Commits of the Hub", rows)
        return 1 if unexplained(known) else 0
    findings = [look(pin) for pin in known]
    if arguments.json:
        print_json({"pins": [asdict(finding) for finding in findings]})
    else:
        print_table("Commits of the Hub, and what they are now", [_compared(finding) for finding in findings])
    return 1 if unexplained(known) or any(finding.verdict == "lacking" for finding in findings) else 0


def _compared(finding: Finding) -> dict[str, str]:
    commits = [(commit or "none")[:12] for commit in (finding.pin.revision, finding.newest)]
    return _row(finding.verdict, finding.pin.name, " → ".join(commits), finding.detail)


def _row(*cells: str) -> dict[str, str]:
    return dict(zip(("", "repository", "commit", "remark"), cells, strict=True))
