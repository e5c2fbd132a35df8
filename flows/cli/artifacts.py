"""`bsl artifacts ls | show | verify | gc | delete | export`: use the artifact store without Prefect."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from rich.console import Console
from rich.highlighter import JSONHighlighter
from rich.table import Table
from rich.text import Text

from bsl.flows.cli.terminal.log_lines import printable
from bsl.flows.cli.terminal.options import NEW_PATH, Output, StoreUrl
from bsl.flows.cli.terminal.printing import print_json, print_line, print_table
from bsl.storage.errors import (
    ArtifactMissingError,
    CorruptArtifactError,
    NewerFormatError,
    StaleArtifactError,
    StorageError,
)
from bsl.storage.filesystem.control_characters import visible_json
from bsl.tasks.diagnostics.finding import Finding, exit_code
from bsl.tasks.rendering.numbers import counted, sized

if TYPE_CHECKING:
    from bsl.storage.artifacts.manifest import Manifest
    from bsl.storage.artifacts.refs import ArtifactRef
    from bsl.storage.artifacts.store import Store

SHOWN = 10  # rows of a table
_LONGEST = timedelta(days=36_500)
_LONGEST_RUN = 200  # characters of a run's name
_WIDE = 108  # width of a line of `ls` without the artifact's name
_NARROW = 38  # width without the columns seconds and run, and with a short time
Artifact = Annotated[str, Parameter(help="<kind>/<key>, a prefix of the key, or <kind>/latest")]


def ls(
    kind: Annotated[str | None, Parameter(help="for example corpus, views, checkpoint, report [default: all]")] = None,
    /,
    *,
    store: StoreUrl = None,
    output: Output = Output(),
) -> None:
    """List artifacts, newest first."""
    from bsl.storage.artifacts.garbage_collection import readable_manifests
    from bsl.storage.artifacts.lookup import check_kind

    opened = _open(store)
    if kind:
        check_kind(opened, kind)
    manifests = readable_manifests(opened, kind)
    ordered = sorted(manifests, key=lambda manifest: manifest.created_at, reverse=True)
    if output.json:
        print_json([_row(manifest) for manifest in ordered])
    elif ordered:
        _print(ordered, opened.url)
    else:
        print(printable(_none_at(opened, kind or "artifacts")))


def _none_at(store: Store, what: str) -> str:
    return f"no {what} at {store.url}. Run a recipe, such as `bsl run tiny`, or use another --store (BSL_STORE)"


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


def show(artifact: Artifact, /, *, store: StoreUrl = None, output: Output = Output()) -> None:
    """Print the tables of a result, the manifest of an artifact and its first rows."""
    import polars as pl

    from bsl.storage.artifacts.refs import LAST_PLACE, kind_of

    opened, ref = _found(store, artifact)
    manifest = opened.check(ref)
    if output.json:
        first = {table: opened.scan(ref, table).head(SHOWN).collect().to_dicts() for table in manifest.tables}
        print_json({"manifest": manifest.model_dump(mode="json"), "first": first})
        return
    if kind_of(ref.kind).place == LAST_PLACE or "scores" in manifest.tables:
        from bsl.tasks.reporting.result_tables import result_lines, result_tables  # slow import

        try:
            for line in result_lines(manifest):
                print_line(line)
            for title, rows in result_tables(opened, manifest):
                print_table(title, rows)
        except CorruptArtifactError as error:  # of another version; its manifest and rows are shown all the same
            print_line(str(error))
    console = Console()
    console.print(JSONHighlighter()(visible_json(manifest.model_dump_json(indent=2))), soft_wrap=True)
    with pl.Config(tbl_width_chars=console.width):
        for table in manifest.tables:
            print(printable(opened.scan(ref, table).head(SHOWN).collect()))


def verify(
    artifact: Annotated[
        str | None, Parameter(help="<kind>/<key>, a prefix of the key, or <kind>/latest [default: all artifacts]")
    ] = None,
    /,
    *,
    store: StoreUrl = None,
    output: Output = Output(),
) -> int:
    """Hash every file; exit code 1 if an artifact is damaged."""
    from bsl.storage.artifacts.lookup import find

    opened = _open(store)
    refs = [find(opened, artifact)] if artifact else opened.refs()
    findings = []
    for ref in refs:
        findings.append(_verified(opened, ref))
        if not output.json:
            print(printable(str(findings[-1])))
    verdicts = [finding.verdict for finding in findings]
    damaged, unread = verdicts.count("DAMAGED"), verdicts.count("UNREAD")
    if output.json:
        print_json([{**asdict(finding), "subject": ref.path} for ref, finding in zip(refs, findings, strict=True)])
    elif not refs:
        print(printable(_none_at(opened, "artifacts")))
    else:
        print(printable(f"{counted(len(refs), 'artifact')}, {damaged} damaged{f', {unread} unread' if unread else ''}"))
    return exit_code(findings)


def _verified(store: Store, ref: ArtifactRef) -> Finding:
    """Verify an artifact.

    The verdict is `DAMAGED`, `stale` (the next run rebuilds it), `newer` (format of a newer version), `UNREAD` (store
    error) or `intact`.
    """
    subject = str(ref)
    try:
        store.check(ref, every_byte=True)
    except StaleArtifactError as error:
        return Finding(subject, "stale", f"{error}; the next run rebuilds it")
    except (ArtifactMissingError, CorruptArtifactError) as error:
        return Finding(subject, "DAMAGED", str(error))
    except NewerFormatError as error:
        return Finding(subject, "newer", str(error))
    except StorageError as error:
        return Finding(subject, "UNREAD", str(error))
    return Finding(subject, "intact")


def gc(
    *,
    older_than: Annotated[
        timedelta,
        Parameter(
            show_default=False,
            help="time since the last use, for example 12h or 2w (m minutes, h, d, w, M months, y); at least a day for "
            "leftovers and copies [default: 30d]",
        ),
    ] = timedelta(days=30),
    delete: Annotated[
        bool, Parameter(help="delete the listed artifacts and leftovers [default: only list them]")
    ] = False,
    store: StoreUrl = None,
    output: Output = Output(),
) -> None:
    """List or delete old artifacts that no newer report or evaluation needs."""
    from bsl.storage.artifacts.garbage_collection import collect, collectable, leftovers
    from bsl.storage.artifacts.leases import store_time

    if not timedelta() <= older_than <= _LONGEST:
        raise ValueError(f"--older-than {older_than}: expected a time up to {_LONGEST.days}d, such as 12h or 30d")
    opened = _open(store)
    now = store_time(opened)
    manifests, left = collectable(opened, older_than, now), leftovers(opened, older_than, now)
    names = [f"{opened.url}/{path}" if isinstance(path, str) else str(path) for path in left]
    if not output.json:
        if manifests:
            _print(manifests, opened.url)
        for name in names:
            print(printable(f"leftover {name}"))
    if delete:
        manifests = collect(opened, manifests, left, now - older_than)
    counts = f"{counted(len(manifests), 'artifact')} and {counted(len(names), 'leftover')}"
    if output.json:
        rows = [_row(manifest) for manifest in manifests]
        print_json({"artifacts": rows, "leftovers": names, "deleted": delete})
    else:
        hint = "; add --delete" if manifests or names else ""
        print(printable(f"deleted {counts}" if delete else f"{counts} can be deleted{hint}"))


def delete(
    artifacts: Annotated[tuple[str, ...], Parameter(help="<kind>/<key>, or a prefix of the key", required=True)],
    /,
    *,
    store: StoreUrl = None,
    output: Output = Output(),
) -> None:
    """Delete the named artifacts, such as damaged ones."""
    from bsl.storage.artifacts import garbage_collection
    from bsl.storage.artifacts.lookup import find

    opened = _open(store)
    refs = list(dict.fromkeys(find(opened, name) for name in artifacts))
    later = garbage_collection.made_from(opened, refs)
    garbage_collection.delete(opened, refs)
    if output.json:
        print_json({"deleted": [ref.path for ref in refs], "made_from_them": [ref.path for ref in later]})
        return
    for ref in refs:
        print(printable(f"deleted {ref}"))
    if later:
        which = "it" if len(refs) == 1 else "them"
        print(printable(f"made from {which}, and still there: {', '.join(map(str, later))}"))


def export(
    artifact: Artifact,
    target: Annotated[
        Path,
        NEW_PATH,
        Parameter(help="a new folder, or a file that ends in .zip; a text file for --as markdown or latex"),
    ],
    /,
    *,
    form: Annotated[
        Literal["mteb", "markdown", "latex"] | None,
        Parameter(name="--as", help="write only the figures, in this format"),
    ] = None,
    onnx: Annotated[bool, Parameter(help="also write the encoder of a checkpoint as an ONNX graph")] = False,
    store: StoreUrl = None,
    output: Output = Output(),
) -> None:
    """Copy one artifact to a new folder or .zip."""
    opened, ref = _found(store, artifact)
    from bsl.tasks.reporting.export import additions, export_figures  # imports Prefect, which would slow down `ls`

    if form and onnx:
        raise ValueError(f"--as {form} writes only figures, --onnx writes an encoder. Remove one of them")
    if form:
        written = export_figures(opened, ref, target, form)
    else:
        with additions(opened, ref, onnx=onnx) as extra:
            written = opened.export(ref, target, extra)
    if output.json:
        print_json({"artifact": ref.path, "written": written})
    else:
        print(printable(written))


def _open(store: str | None) -> Store:
    from bsl.flows.run_context import run_context_of

    return run_context_of({"store": store}).open_store()


def _found(store: str | None, name: str) -> tuple[Store, ArtifactRef]:
    from bsl.storage.artifacts.lookup import find

    opened = _open(store)
    return opened, find(opened, name)


def _print(manifests: list[Manifest], title: str) -> None:
    longest = max((len(str(manifest.ref)) for manifest in manifests), default=0)
    console = Console()
    # Names are never truncated, because names of one kind have the same beginning; other columns shrink instead.
    narrow = console.is_terminal and console.width < _WIDE + longest
    table = Table(title=Text(printable(title)))
    for name in ("artifact", "rows", "size", "made", *(() if narrow else ("seconds", "run"))):
        table.add_column(name, justify="right" if name in {"rows", "size", "seconds"} else "left", no_wrap=True)
    for manifest in manifests:
        created = manifest.created_at.astimezone().strftime("%m-%d %H:%M" if narrow else "%Y-%m-%d %H:%M:%S")
        rest = () if narrow else (f"{manifest.duration_s:.1f}", Text(printable(manifest.provenance.run[:_LONGEST_RUN])))
        table.add_row(str(manifest.ref), f"{manifest.rows:,}", sized(manifest.size), created, *rest)
    Console(width=max(console.width, (_NARROW if narrow else _WIDE) + longest)).print(table)
