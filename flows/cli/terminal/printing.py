"""Print results of commands: JSON, tables and lines."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any, Final, cast

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from flows.cli.terminal.log_lines import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from flows.cli.terminal.options import Output
    from storage.artifacts.refs import ArtifactRef, EvaluationRef
    from storage.artifacts.store import Store
    from storage.sources.own_text import TextSource

_ANY_WIDTH: Final = 10_000  # columns
_LONGEST_CELL: Final = 2_000  # characters of a table's cell; --json has the complete text
_UNESCAPED: Final = re.compile(r"[\x7f-\x9f]")  # control characters that JSON does not escape
_INTERVAL: Final = re.compile(r" (\[[-+\d., ]+\])")
_SOURCES: Final = "How your files are read (change it with --columns, --title and --document)"


def print_sources(sources: Iterable[TextSource], labels: str | None, output: Output) -> dict[str, Any]:
    """Print how the user's files are read, unless `--json`; return it as fields of the JSON.

    Args:
        sources: Sources of text.
        labels: File of labels; None without one.
        output: Output options.

    Raises:
        SourceError: The file of labels is missing, or its columns are neither scored pairs nor classes.
    """
    from storage.sources.labels import label_source

    summaries = [source.summary for source in sources]
    labelled = label_source(labels).summary if labels else None
    if not output.json:
        print_table(_SOURCES, summaries)
        if labelled is not None:
            print(printable(labelled))
    return {"taken": summaries, "labels": labelled}


def print_json(outcome: object) -> None:
    """Print one JSON value; types that JSON does not have, such as paths, are converted by `str`."""
    text = json.dumps(outcome, indent=1, ensure_ascii=False, default=str)
    print(_UNESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text), flush=True)


def print_table(title: str, rows: list[dict[str, str]]) -> None:
    """Print rows with equal keys as a table below a title; at least 120 columns wide if the output is not a terminal.

    If the terminal is too narrow, each interval moves to a line below its figure.
    """
    if not rows:
        print(printable(title))
        return
    console = Console()
    if not console.is_terminal:
        console = Console(width=max(120, console.width))
    table = _table(rows)
    if console.measure(table, options=console.options.update(max_width=_ANY_WIDTH)).maximum > console.width:
        table = _table([{name: _INTERVAL.sub(r"\n\1", cell) for name, cell in row.items()} for row in rows])
    console.print(Text(printable(title), style="table.title"), table, sep="\n")


def print_line(text: str) -> None:
    """Print a sentence, wrapped between words in a terminal, not wrapped in a pipe."""
    console = Console()
    console.print(Text(printable(text)), soft_wrap=not console.is_terminal)


def browse_line() -> str:
    """Return a line with the command that shows a run's stages and logs; `make run` does not put `bsl` on the path."""
    return f"browse:  {'make ui' if 'MAKELEVEL' in os.environ else 'bsl ui'}"


def _table(rows: list[dict[str, str]]) -> Table:
    """Build a table of plain text; rich would interpret a name in brackets as markup."""
    table = Table(*(Column(Text(printable(name)), overflow="fold") for name in rows[0]))
    for row in rows:
        table.add_row(*(Text(_cut(printable(cell))) for cell in row.values()))
    return table


def _cut(text: str) -> str:
    """Cut a long text: to lay out a line of megabytes takes minutes."""
    return text if len(text) <= _LONGEST_CELL else f"{text[:_LONGEST_CELL]} …"


def tables_of(store: Store, ref: ArtifactRef) -> dict[str, list[dict[str, Any]]]:
    """Return all tables of an artifact as rows, for JSON."""
    return {name: store.scan(ref, name).collect().to_dicts() for name in store.manifest(ref).tables}


def figures_of(store: Store, ref: EvaluationRef) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Yield titles and rows: the scores of an evaluation, and the differences if it compared several systems."""
    from tasks.rendering.score_tables import INTERVALS, difference_rows, score_rows

    yield INTERVALS, score_rows(store.scan(ref, "scores").collect())
    if "comparison" in store.manifest(ref).tables:
        yield "Paired differences × 100", difference_rows(store.scan(ref, "comparison").collect())


def print_result(
    store: Store,
    ref: ArtifactRef,
    output: Output,
    tables: Callable[[], Iterable[tuple[str, list[dict[str, str]]]]],
    lines: Iterable[str] = (),
    **more: object,
) -> None:
    """Print a result: its tables, its findings and the path of its page; as JSON if requested.

    Args:
        store: Store with the artifact.
        ref: Artifact with a page; its manifest has the findings, if it compares systems.
        output: Text or JSON.
        tables: Returns titles and rows.
        lines: Further sentences.
        more: Further fields of the JSON.
    """
    from tasks.reporting.publish import page_of

    figures, page = store.manifest(ref).figures, page_of(store, ref)
    if output.json:
        named = {"figures" if name == ref.kind else name: rows for name, rows in tables_of(store, ref).items()}
        print_json({ref.kind: ref.path, "page": page, **figures, **named, **more})
        return
    for title, rows in tables():
        print_table(title, rows)
    for line in (*cast("list[str]", figures.get("findings", [])), *lines):
        print_line(line)
    print(f"page:    {page}")
