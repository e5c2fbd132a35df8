"""Print results of commands: JSON, tables and lines."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from bsl.flows.cli.terminal.log_lines import printable
from bsl.storage.filesystem.control_characters import visible, visible_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bsl.flows.cli.terminal.options import Output
    from bsl.storage.artifacts.refs import ArtifactRef
    from bsl.storage.artifacts.store import Store
    from bsl.storage.sources.labels import LabelSource
    from bsl.storage.sources.own_text import TextSource

_ANY_WIDTH: Final = 10_000  # columns
_LONGEST_CELL: Final = 2_000  # characters of a table's cell; --json has the complete text
_INTERVAL: Final = re.compile(r" (\[[-+\d., ]+\])")
_SOURCES: Final = "How your files are read (change it with --columns, --title, --document and --encoding)"


def print_sources(sources: Iterable[TextSource], labels: LabelSource | None, output: Output) -> dict[str, Any]:
    """Print how the user's files are read, unless `--json`; return it as fields of the JSON.

    Args:
        sources: Sources of text.
        labels: Labels; None without them.
        output: Output options.
    """
    summaries = [source.summary for source in sources]
    labelled = labels.summary if labels else None
    if not output.json:
        print_table(_SOURCES, summaries)
        if labelled is not None:
            print(printable(labelled))
    return {"taken": summaries, "labels": labelled}


def print_sets(names: Iterable[str], mirror: str | None) -> None:
    """Print how the files of evaluation sets are read, on standard error.

    Args:
        names: Names of sets; only `own:` and `labels:` are files.
        mirror: Folder that may contain datasets.

    Raises:
        SourceError: A file cannot be read, or its columns are unclear.
        EvaluationError: A file has too few labels.
    """
    from bsl.storage.sources import labels, own_text
    from bsl.storage.sources.reading_config import ReadingConfig
    from bsl.tasks.corpus.labels import evaluation_counts

    for name in names:
        if name.startswith(labels.SET_PREFIX):
            labelled = labels.label_source(name.removeprefix(labels.SET_PREFIX))
            line = labelled.summary.removeprefix(labels.SET_PREFIX)
            print(printable(f"{name}:{line}; {evaluation_counts(labelled)}"), file=sys.stderr)
        elif name.startswith(own_text.SET_PREFIX):
            path = name.removeprefix(own_text.SET_PREFIX)
            for source in own_text.text_sources(ReadingConfig(), [path], mirror):
                roles = {role: column for role, column in source.summary.items() if role != "files" and column}
                columns = ", ".join(f"{role}: {column}" for role, column in roles.items())
                print(printable(f"{name}: {columns}"), file=sys.stderr)


def print_json(outcome: object) -> None:
    """Print one JSON value; types that JSON does not have, such as paths, are converted by `str`.

    Numbers that JSON does not have, such as the interval of a set with equal scores, are null. Characters that the
    terminal's encoding lacks are escapes of JSON.
    """
    finite = _finite(outcome)
    text = json.dumps(finite, indent=1, ensure_ascii=False, default=str)
    try:
        text.encode(sys.stdout.encoding or "utf-8", "surrogateescape")
    except UnicodeEncodeError:
        text = json.dumps(finite, indent=1, default=str)
    print(visible_json(text), flush=True)


def _finite(value: object) -> object:
    """Return a value with None for each NaN and infinity, which Python would write as no JSON."""
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_table(title: str, rows: list[dict[str, str]], *, are_texts: bool = False) -> None:
    """Print rows with equal keys as a table below a title; at least 120 columns wide if the output is not a terminal.

    If the terminal is too narrow, each interval moves to a line below its figure.

    Args:
        title: Line above the table.
        rows: Heading → cell, for each row.
        are_texts: Whether these are the user's texts, so that a URL in them is no address and stays complete.
    """
    show = visible if are_texts else printable
    if not rows:
        print(show(title))
        return
    console = Console()
    if not console.is_terminal:
        console = Console(width=max(120, console.width))
    table = _table(rows, show)
    if console.measure(table, options=console.options.update(max_width=_ANY_WIDTH)).maximum > console.width:
        table = _table([{name: _INTERVAL.sub(r"\n\1", cell) for name, cell in row.items()} for row in rows], show)
    console.print(Text(show(title), style="table.title"), table, sep="\n")


def print_rows(title: str, rows: list[dict[str, str]], output: Output, records: object = None) -> None:
    """Print rows as a table, with `--json` the records, or the rows if there are none."""
    if output.json:
        print_json(rows if records is None else records)
    else:
        print_table(title, rows)


def print_line(text: str) -> None:
    """Print a sentence, wrapped between words in a terminal, not wrapped in a pipe."""
    console = Console()
    console.print(Text(printable(text)), soft_wrap=not console.is_terminal)


def browse_line() -> str:
    """Return a line with the command that shows a run's stages and logs; `make run` does not put `bsl` on the path."""
    return f"browse:  {'make ui' if 'MAKELEVEL' in os.environ else 'bsl ui'}"


def encoder_lines(store: Store, key: str, note: str = "") -> tuple[str, str]:
    """Return the name of a checkpoint's encoder, and the lines that say how to open it.

    In a local store the name is its folder. An object store has no folder that another program opens, so the name is
    `checkpoint/<key>`, which `bsl` and `SentenceEncoder.load` accept.

    Args:
        store: Store of the checkpoint.
        key: Key of the checkpoint.
        note: What to say about the encoder, for example that it is unchanged.
    """
    if store.local is not None:
        name, opens = f"{store.address}/checkpoint/{key}/encoder", "opens with SentenceTransformer"
    else:
        name = f"checkpoint/{key}"
        opens = f"`bsl export checkpoint/{key[:12]} FOLDER` writes a folder that opens with SentenceTransformer"
    return name, f"encoder: {name}\n         ({'; '.join(filter(None, (note, opens)))})"


def _table(rows: list[dict[str, str]], show: Callable[[str], str]) -> Table:
    """Build a table of plain text; rich would interpret a name in brackets as markup."""
    table = Table(*(Column(Text(show(name)), overflow="fold") for name in rows[0]))
    for row in rows:
        table.add_row(*(Text(_cut(show(cell))) for cell in row.values()))
    return table


def _cut(text: str) -> str:
    """Cut a long text: to lay out a line of megabytes takes minutes."""
    return text if len(text) <= _LONGEST_CELL else f"{text[:_LONGEST_CELL]} …"


def print_result(store: Store, ref: ArtifactRef, output: Output, lines: Iterable[str] = (), **more: object) -> None:
    """Print a result: its tables, its findings and the path of its page; as JSON if requested.

    Args:
        store: Store with the artifact.
        ref: Artifact with a page.
        output: Text or JSON.
        lines: Further sentences.
        more: Further fields of the JSON.
    """
    from bsl.tasks.reporting.publish import page_of
    from bsl.tasks.reporting.result_tables import result_lines, result_tables

    manifest, page = store.manifest(ref), page_of(store, ref)
    if output.json:
        tables = {name: store.scan(ref, name).collect().to_dicts() for name in manifest.tables}
        named = {"figures" if name == ref.kind else name: rows for name, rows in tables.items()}
        print_json({ref.kind: ref.path, "page": page, **manifest.figures, **named, **more})
        return
    for title, rows in result_tables(store, manifest):
        print_table(title, rows)
    for line in (*result_lines(manifest), *lines):
        print_line(line)
    print(printable(f"page:    {page}"))
