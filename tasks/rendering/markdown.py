"""Render a page as GitHub-flavoured Markdown, for the Prefect UI and for readers of files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tasks.rendering.blocks import Charts, Code, Facts, Folded, Lineage, Prose, Table, split_interval
from tasks.rendering.escaping import code, plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tasks.rendering.blocks import Block, Page


def markdown(page: Page, *, pictures: bool = True) -> str:
    """Return the page as Markdown; equal pages give equal text.

    Args:
        page: the page.
        pictures: whether charts are linked as files beside the page; the Prefect UI cannot open them.
    """
    found = " ".join(filter(None, [f"**{page.word}**" if page.word else "", plain(page.sentence)]))
    sections = [f"# {plain(page.title)}", found, *_rendered(page.lead, pictures=pictures)]
    for part in page.parts:
        if part.blocks and not part.html_only:
            sections += [f"## {plain(part.title)}", *_rendered(part.blocks, pictures=pictures)]
    return "\n\n".join(filter(None, sections)) + "\n"


def markdown_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a table of equal-keyed rows; `none` without rows."""
    return grid(list(rows[0]), [[_cell(value) for value in row.values()] for row in rows]) if rows else "none"


def grid(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of headings and rows of text."""
    lines = [list(map(plain, heads)), ["---"] * len(heads), *(list(map(plain, row)) for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _rendered(blocks: Sequence[Block], *, pictures: bool) -> Iterator[str]:
    for block in blocks:
        match block:
            case Table():
                yield f"{plain(block.title)}: none." if not block.rows else f"{plain(block.title)}:\n\n{_table(block)}"
            case Charts():
                if pictures and block.files:
                    yield from (f"![{plain(chart.label)}]({chart.file})" for chart in block.drawn)
            case Prose():
                yield f"### {plain(block.text)}" if block.under else plain(block.text)
            case Facts():
                yield grid(["name", "value"], list(block.pairs.items()))
            case Code():
                yield _fenced(block)
            case Lineage():
                lines = [f"{station.title}: {', '.join(station.lines)}" for group in block.groups for station in group]
                yield "\n".join(f"- {plain(line)}" for line in lines)
            case Folded():
                yield f"### {plain(block.summary)}"
                yield from _rendered(block.blocks, pictures=pictures)


def _table(table: Table) -> str:
    rows = [row.cells for row in table.rows]
    if table.brief:
        rows = [[split_interval(cell)[0] for cell in row] for row in rows]
    return grid(table.heads, rows)


def _fenced(block: Code) -> str:
    """Return a block of code; its fence is longer than any run of backticks in the text."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", block.text)), default=0))
    return f"{fence}{block.language}\n{block.text}\n{fence}" if "\n" in block.text else code(block.text)


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
