"""`bsl artifacts ls | show | verify | gc | export`: the store without Prefect."""

from __future__ import annotations

import argparse
import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from flows.cli.main import add_debug
from flows.cli.terminal.log_lines import printable
from flows.cli.terminal.options import add_json, print_json
from flows.run_context import run_context_of
from storage.artifacts.export import export
from storage.artifacts.garbage_collection import (
    collect,
    collectable,
    forgotten_loans,
    leftovers,
    readable_manifests,
    unused_copies,
)
from storage.artifacts.lookup import check_kind, find
from storage.errors import CorruptArtifactError, NewerFormatError, StorageError
from tasks.rendering.numbers import sized

if TYPE_CHECKING:
    from storage.artifacts.manifest import Manifest
    from storage.artifacts.refs import ArtifactRef
    from storage.artifacts.store import Store


SHOWN = 10  # rows of a table
_LONGEST = timedelta(days=36_500)
_OTHERS = 108  # letters of a line of `ls` beside the artifact's name
_NARROW = 38  # the same without seconds and run, with a short time


def define_artifacts(parser: argparse.ArgumentParser) -> None:
    """The verb and its own verbs."""
    place = argparse.ArgumentParser(add_help=False)
    place.add_argument("--store", help="URL of the artifact store (BSL_STORE; .bsl/store)")
    add_json(place)
    add_debug(place, default=argparse.SUPPRESS)
    actions = parser.add_subparsers(dest="action", required=True, metavar="{ls,show,verify,gc,export}")
    listing = actions.add_parser("ls", parents=[place], help="all artifacts, newest first")
    listing.add_argument("kind", nargs="?", metavar="KIND", help="such as corpus, views, checkpoint, report")
    listing.set_defaults(call=_ls)
    show = actions.add_parser("show", parents=[place], help="the manifest of one artifact and its first rows")
    show.add_argument(
        "artifact", metavar="ARTIFACT", help="<kind>/<key>, of which a beginning is enough, or <kind>/latest"
    )
    show.set_defaults(call=_show)
    verify = actions.add_parser(
        "verify", parents=[place], help="hash every file of every artifact; exit code 1 if any is damaged"
    )
    verify.add_argument("artifact", nargs="?", metavar="ARTIFACT", help="this one alone, named as `show` takes it")
    verify.set_defaults(call=_verify)
    collection = actions.add_parser(
        "gc", parents=[place], help="list, or delete, what is old and no younger report or evaluation needs"
    )
    collection.add_argument(
        "--older-than",
        default="30d",
        help="since it was last used, such as 12h, 30d (default 30d); leftovers and copies stay a day at least",
    )
    collection.add_argument("--delete", action="store_true", help="delete; without it nothing is touched")
    collection.set_defaults(call=_gc)
    copy = actions.add_parser("export", parents=[place], help="copy one artifact to a new folder or .zip")
    copy.add_argument("artifact", metavar="ARTIFACT", help="named as `show` takes it")
    copy.add_argument("target", type=Path, metavar="TARGET", help="a new folder, or a file that ends in .zip")
    copy.add_argument("--as", dest="form", choices=["mteb", "markdown", "latex"], help="figures only, in this form")
    copy.add_argument("--onnx", action="store_true", help="of a checkpoint: also write its encoder as an ONNX graph")
    copy.set_defaults(call=_export)


def age(text: str) -> timedelta:
    """`12h` or `30d` as a duration.

    Raises:
        ValueError: of another form, or longer than a century.
    """
    match = re.fullmatch(r"([0-9]{1,6})([hd])", text)
    given = timedelta(hours=int(match[1]) * (24 if match[2] == "d" else 1)) if match else None
    if given is None or given > _LONGEST:
        raise ValueError(f"--older-than {text[:40]}: expected hours or days up to {_LONGEST.days}d, such as 12h or 30d")
    return given


def _ls(arguments: argparse.Namespace) -> int:
    store = _open(arguments)
    if arguments.kind:
        check_kind(store, arguments.kind)
    manifests = readable_manifests(store, arguments.kind)
    ordered = sorted(manifests, key=lambda manifest: manifest.created_at, reverse=True)
    if arguments.json:
        print_json([_row(manifest) for manifest in ordered])
    elif ordered:
        _print(ordered, store.url)
    else:
        print(_none_at(store, arguments.kind or "artifacts"))
    return 0


def _none_at(store: Store, what: str) -> str:
    return f"no {what} at {store.url}; run a recipe, such as `bsl run tiny`, or give another --store (BSL_STORE)"


def _row(manifest: Manifest) -> dict[str, object]:
    return {
        "artifact": manifest.ref.path,
        "kind": manifest.kind,
        "key": manifest.key,
        "stage": manifest.provenance.stage,
        "rows": manifest.rows,
        "bytes": manifest.size,
        "made": manifest.created_at.isoformat(),
        "seconds": manifest.duration_s,
        "run": manifest.provenance.run,
    }


def _show(arguments: argparse.Namespace) -> int:
    store = _open(arguments)
    ref = find(store, arguments.artifact)
    manifest = store.check(ref)
    if arguments.json:
        first = {table: store.scan(ref, table).head(SHOWN).collect().to_dicts() for table in manifest.tables}
        print_json({"manifest": manifest.model_dump(mode="json"), "first": first})
        return 0
    console = Console()
    console.print_json(manifest.model_dump_json())
    for table in manifest.tables:
        console.print(printable(store.scan(ref, table).head(SHOWN).collect()), markup=False)
    return 0


def _verify(arguments: argparse.Namespace) -> int:
    store = _open(arguments)
    refs = [find(store, arguments.artifact)] if arguments.artifact else store.refs()
    rows = []
    for ref in refs:
        verdict, reason = _verdict(store, ref)
        rows.append({"artifact": ref.path, "verdict": verdict, "reason": reason})
        if not arguments.json:
            print(f"{verdict:<7} {ref}{': ' + reason if reason else ''}")
    verdicts = [row["verdict"] for row in rows]
    damaged, unread = verdicts.count("DAMAGED"), verdicts.count("unread")
    if arguments.json:
        print_json(rows)
    elif not refs:
        print(_none_at(store, "artifacts"))
    else:
        print(f"{len(refs)} artifacts, {damaged} damaged{f', {unread} unread' if unread else ''}")
    return 1 if damaged or unread else 0


def _verdict(store: Store, ref: ArtifactRef) -> tuple[str, str]:
    """Whether an artifact is damaged; if not, whether a run of this program takes it: `newer`, `stale` or `intact`.

    One that the store does not give out now is `unread`.
    """
    try:
        if (fault := store.damage(ref)) is not None:
            return "DAMAGED", fault
        if (reason := store.staleness(store.manifest(ref))) is not None:
            return "stale", f"{reason}; the next run makes it again"
    except NewerFormatError as error:
        return "newer", str(error)
    except StorageError as error:
        return "unread", str(error)
    return "intact", ""


def _gc(arguments: argparse.Namespace) -> int:
    store = _open(arguments)
    older, now = age(arguments.older_than), datetime.now(UTC)
    try:
        manifests = collectable(store, older, now)
    except CorruptArtifactError as error:
        print(f"bsl: {error}", file=sys.stderr)
        return 1
    folders = [*leftovers(store, older), *unused_copies(store, older)]
    loans = forgotten_loans(store, older, now)
    left = [*map(str, folders), *(f"{store.url}/{loan}" for loan in loans)]
    if not arguments.json:
        _print(manifests, store.url)
        for name in left:
            print(f"leftover {name}")
    if arguments.delete:
        manifests = collect(store, manifests, folders, loans, now - older)
    counted = f"{len(manifests)} artifacts and {len(left)} leftovers"
    if arguments.json:
        rows = [_row(manifest) for manifest in manifests]
        print_json({"artifacts": rows, "leftovers": left, "deleted": arguments.delete})
    else:
        print(f"deleted {counted}" if arguments.delete else f"{counted} would go; add --delete to do it")
    return 0


def _export(arguments: argparse.Namespace) -> int:
    store = _open(arguments)
    ref = find(store, arguments.artifact)
    from tasks.reporting.export import (  # imports Prefect, which would slow down listing a store
        additions,
        export_figures,
    )

    if arguments.form and arguments.onnx:
        raise ValueError(f"--as {arguments.form} writes figures, and --onnx an encoder; leave one of them out")
    if arguments.form:
        written = export_figures(store, ref, arguments.target, arguments.form)
    else:
        with additions(store, ref, onnx=arguments.onnx) as extra:
            written = export(store, ref, arguments.target, extra)
    if arguments.json:
        print_json({"artifact": ref.path, "written": written})
    else:
        print(written)
    return 0


def _open(arguments: argparse.Namespace) -> Store:
    return run_context_of(vars(arguments)).open_store()


def _plain(text: str) -> Text:
    """Foreign text as it is: without markup, and without what a terminal would obey."""
    return Text("".join(letter if letter.isprintable() else "�" for letter in text[:200]))


def _print(manifests: list[Manifest], where: str) -> None:
    longest = max((len(str(manifest.ref)) for manifest in manifests), default=0)
    console = Console()
    # Whole names always: cut, those of one kind would look alike. In a narrow terminal the rest gives way.
    narrow = console.is_terminal and console.width < _OTHERS + longest
    table = Table(title=Text(where))
    for name in ("artifact", "rows", "size", "made", *(() if narrow else ("seconds", "run"))):
        table.add_column(name, justify="right" if name in {"rows", "size", "seconds"} else "left", no_wrap=True)
    for manifest in manifests:
        made = manifest.created_at.astimezone().strftime("%m-%d %H:%M" if narrow else "%Y-%m-%d %H:%M:%S")
        rest = () if narrow else (f"{manifest.duration_s:.1f}", _plain(manifest.provenance.run))
        table.add_row(str(manifest.ref), f"{manifest.rows:,}", sized(manifest.size), made, *rest)
    Console(width=max(console.width, (_NARROW if narrow else _OTHERS) + longest)).print(table)
