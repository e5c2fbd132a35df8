"""`bsl mirror FOLDER [NAME …]`: fill a Hub cache for machines without the Hub; `bsl pins`: list pinned Hub commits."""

from __future__ import annotations

import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from flows.cli.terminal.options import Changes, Output
from flows.cli.terminal.overrides import configured
from flows.cli.terminal.printing import print_json, print_table
from flows.run_context import run_context_of
from storage.datasets.registry import DATASETS
from storage.errors import StorageError
from storage.sources.mirror import MODEL, fill_cache
from storage.sources.sources import SourceSpec, perhaps_meant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flows.hub import PinStatus

RECIPE: Final = "recipe:"


def mirror(
    folder: Annotated[str, Parameter(help="HF_HOME of the machines that use it; created or completed")],
    names: Annotated[
        tuple[str, ...],
        Parameter(
            help=f"{RECIPE}<recipe> for everything that it reads except your own files; <set>, <set>/<split>, "
            f"<hub id>[@<revision>][/<split>] or {MODEL}<hub id>[@<revision>], by default the commit that a recipe "
            "pins, else the newest [default: every declared set]"
        ),
    ] = (),
    /,
    *,
    settings: Changes = (),
    own: Annotated[
        str | None,
        Parameter(
            name="--mirror",
            help="folder of your own files; files in it are not downloaded [env: BSL_DATA_MIRROR]",
        ),
    ] = None,
    output: Output = Output(),
) -> int:
    """Fill a Hub cache with the files that recipes read, for use as HF_HOME; exit code 1 if a file is missing."""
    if "://" in folder:
        raise ValueError(f"{folder} is not a folder on this machine. Fill a local folder and copy it there")
    own = run_context_of({"mirror": own}).mirror
    lacking: dict[str, str] = {}
    yours = _own(names, settings)
    files: dict[str, str] = {}
    for target in _targets(names, settings):
        name = f"{target.dataset}/{target.split or 'train'}" if isinstance(target, SourceSpec) else target
        try:
            for file, outcome in fill_cache(Path(folder), target, own):
                files[str(file)] = outcome
                if not output.json:
                    print(f"{outcome:<8} {file}")
        except StorageError as error:
            lacking[name] = f"{error}{perhaps_meant(name)}"
            print(f"lacking  {name}: {lacking[name]}", file=sys.stderr)
    if output.json:
        print_json({"files": files, "lacking": lacking, "yours": yours})
    for name in [] if output.json else yours:
        print(f"yours    {name}")
    if files and not output.json:
        print(f"on machines without the Hub: HF_HOME={shlex.quote(folder)} HF_HUB_OFFLINE=1")
    return 1 if lacking else 0


def _targets(names: Sequence[str], settings: Sequence[str]) -> list[str | SourceSpec]:
    """Return the models, sources and sets of the names; without names, every split of every declared set."""
    if not names:
        return [f"{declared.name}/{split}" for declared in DATASETS.values() for split in declared.splits]
    targets: list[str | SourceSpec] = []
    for name in names:
        if name.startswith(RECIPE):
            from flows.hub import needed

            targets += needed(configured(name.removeprefix(RECIPE), settings))
        else:
            targets.append(_pinned(name))
    return list(dict.fromkeys(targets))


def _own(names: Sequence[str], settings: Sequence[str]) -> list[str]:
    """Return the user's files that the named recipes read, each once."""
    from flows.recipes.listing import own_files

    recipes = [configured(name.removeprefix(RECIPE), settings) for name in names if name.startswith(RECIPE)]
    return list(dict.fromkeys(file for config in recipes for file in own_files(config)))


def _pinned(name: str) -> str:
    """Append to a model's name the revision that a recipe pins, unless it has one."""
    if not name.startswith(MODEL) or "@" in name:
        return name
    from flows.recipes import RECIPES

    pins = dict(model for make in RECIPES.values() for model in make().models())
    revision = pins.get(name.removeprefix(MODEL))
    return f"{name}@{revision}" if revision else name


def pins(
    *,
    check: Annotated[bool, Parameter(help="compare the commits with the newest commits on the Hub")] = False,
    output: Output = Output(),
) -> int:
    """List the Hub commits that recipes read; compare them with the Hub.

    Exit code 1 if the Hub does not serve a pinned repository, or a pin is missing without a recorded reason.
    """
    from flows.hub import look, unexplained
    from flows.hub import pins as pinned

    known = pinned()
    if not check:
        if output.json:
            print_json([asdict(pin) for pin in known])
        else:
            rows = [_row(pin.kind, pin.name, pin.revision or "newest", pin.reason) for pin in known]
            print_table("Hub commits", rows)
        return 1 if unexplained(known) else 0
    findings = [look(pin) for pin in known]
    if output.json:
        print_json({"pins": [asdict(finding) for finding in findings]})
    else:
        print_table("Hub commits, compared with the newest commits", [_compared(finding) for finding in findings])
    return 1 if unexplained(known) or any(finding.verdict == "lacking" for finding in findings) else 0


def _compared(finding: PinStatus) -> dict[str, str]:
    commits = [(commit or "none")[:12] for commit in (finding.pin.revision, finding.newest)]
    return _row(finding.verdict, finding.pin.name, " → ".join(commits), finding.detail)


def _row(*cells: str) -> dict[str, str]:
    return dict(zip(("", "repository", "commit", "remark"), cells, strict=True))
