"""`bsl mirror FOLDER [NAME …]`: fill a Hub cache for machines without the Hub; `bsl pins`: list pinned Hub commits."""

from __future__ import annotations

import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from bsl.flows.cli.terminal.log_lines import printable
from bsl.flows.cli.terminal.options import EXISTING, Changes, Output
from bsl.flows.cli.terminal.overrides import configured
from bsl.flows.cli.terminal.printing import print_json, print_rows
from bsl.storage.errors import HubSilentError, StorageError

RECIPE: Final = "recipe:"


def mirror(
    folder: Annotated[str, Parameter(help="HF_HOME of the machines that use it; created or completed")],
    names: Annotated[
        tuple[str, ...],
        Parameter(
            help=f"{RECIPE}<recipe> for everything that it reads except your own files; <set>, <set>/<split>, "
            "<hub id>[@<revision>][/<split>] or model:<hub id>[@<revision>], by default the commit that a recipe "
            "pins, else the newest [default: every declared set]"
        ),
    ] = (),
    /,
    *,
    settings: Changes = (),
    own: Annotated[
        str | None,
        EXISTING,
        Parameter(
            name="--mirror", help="folder of your own files; files in it are not downloaded [env: BSL_DATA_MIRROR]"
        ),
    ] = None,
    output: Output = Output(),
) -> int:
    """Fill a Hub cache with the files that recipes read, for use as HF_HOME.

    The exit code is 1 if a file is missing.
    """
    if "://" in folder:
        raise ValueError(f"{folder} is not a folder on this machine. Fill a local folder and copy it there")
    if Path(folder).is_file():
        raise ValueError(f"{folder} is a file, expected a folder. Name a new folder, or the one to complete")
    if settings and not any(name.startswith(RECIPE) for name in names):
        raise ValueError(f"--set: has an effect only with a recipe. Name one: {RECIPE}NAME")
    from bsl.flows.hub import targets
    from bsl.flows.recipes.listing import own_files
    from bsl.flows.run_context import run_context_of
    from bsl.storage.filesystem.os_errors import writing
    from bsl.storage.hub.faults import REMEDIES
    from bsl.storage.sources.mirror import fill_cache
    from bsl.storage.sources.sources import SourceSpec, perhaps_meant

    site = run_context_of({"mirror": own})
    site.check_mirror()
    recipes = [configured(name.removeprefix(RECIPE), settings) for name in names if name.startswith(RECIPE)]
    yours = list(dict.fromkeys(file for config in recipes for file in own_files(config)))
    files: dict[str, str] = {}
    lacking: dict[str, str] = {}
    silent = {remedies.silent for remedies in REMEDIES.values()}
    wanted = targets([name for name in names if not name.startswith(RECIPE)], recipes)
    if wanted:
        with writing(folder):
            Path(folder).mkdir(parents=True, exist_ok=True)
    for target in wanted:
        name = f"{target.dataset}/{target.split or 'train'}" if isinstance(target, SourceSpec) else target
        try:
            for file, outcome in fill_cache(Path(folder), target, site.mirror):
                files[str(file)] = outcome
                if not output.json:
                    print(printable(f"{outcome:<8} {file}"))
        except StorageError as error:
            again = "Run this again later, or on a machine that reaches the Hub; fetched files are kept."
            fault = str(error)
            if isinstance(error, HubSilentError) and error.remedy in silent:  # names this command's own cache
                fault = f"{error.finding}. {again}"
            lacking[name] = f"{fault}{perhaps_meant(name)}"
            print(printable(f"lacking  {name}: {lacking[name]}"), file=sys.stderr)
    if output.json:
        print_json({"files": files, "lacking": lacking, "yours": yours})
    else:
        for name in yours:
            print(printable(f"yours    {name}"))
        if files:
            print(printable(f"on machines without the Hub: HF_HOME={shlex.quote(folder)} HF_HUB_OFFLINE=1"))
        elif not (lacking or yours):
            print("nothing to fetch: everything is in the package or a local file")
    return 1 if lacking else 0


def pins(*, output: Output = Output()) -> None:
    """List the Hub commits that recipes read."""
    from bsl.flows.hub import pins as pinned

    found = pinned()
    rows = [
        {"": pin.kind, "repository": pin.name, "commit": pin.revision or "newest", "remark": pin.reason}
        for pin in found
    ]
    print_rows("Hub commits", rows, output, [asdict(pin) for pin in found])
