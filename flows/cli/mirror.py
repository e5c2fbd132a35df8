"""`bsl mirror FOLDER [NAME …]`: data sets and models into a folder for machines without the Hub."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from flows.cli.options import add_json, print_json
from flows.site import site_of
from storage.declarations import DATASETS
from storage.errors import StorageError
from storage.mirror import MODEL, Mirror


def define_mirror(parser: argparse.ArgumentParser) -> None:
    """The verb."""
    parser.add_argument("folder", type=_folder)
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"<set>, <set>/<split> or {MODEL}<hub id>[@<revision>], by default as a recipe pins it, else the newest; "
        "every declared set (default)",
    )
    parser.add_argument(
        "--mirror", help="another mirror, or a folder with the sets' own files, read before the Hub (BSL_DATA_MIRROR)"
    )
    add_json(parser)
    parser.set_defaults(call=_mirror)


def _folder(text: str) -> Path:
    if "://" in text:
        raise argparse.ArgumentTypeError(f"{text} is no folder of this machine; fill one and copy it there as it is")
    return Path(text)


def _mirror(arguments: argparse.Namespace) -> int:
    """Everything that can be had; exit code 1 if something could not."""
    mirror = Mirror(arguments.folder, site_of(vars(arguments)).mirror)
    lacking: dict[str, str] = {}
    got: dict[str, str] = {}
    own = [declared for declared in DATASETS.values() if declared.folder is None]
    for name in arguments.names or [f"{declared.name}/{split}" for declared in own for split in declared.splits]:
        try:
            for file, outcome in mirror.add(_pinned(name)):
                got[str(file)] = outcome
                if not arguments.json:
                    print(f"{outcome:<8} {file}")
        except StorageError as error:
            lacking[name] = str(error)
            print(f"lacking  {name}: {error}", file=sys.stderr)
    if arguments.json:
        print_json({"files": got, "lacking": lacking})
    return 1 if lacking else 0


def _pinned(name: str) -> str:
    """A model's name with the revision that a recipe pins, unless it has one."""
    if not name.startswith(MODEL) or "@" in name:
        return name
    from flows.recipes import RECIPES

    pins = dict(model for make in RECIPES.values() for model in make().models())
    revision = pins.get(name.removeprefix(MODEL))
    return f"{name}@{revision}" if revision else name
