"""Render a page as GitHub-flavoured Markdown, for the Prefect UI and for readers of files."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bsl.tasks.rendering.blocks import Charts, Folded
from bsl.tasks.rendering.escaping import grid, plain, sentence

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bsl.tasks.rendering.blocks import Block, Page


def markdown(page: Page, *, pictures: bool = True) -> str:
    """Return the page as Markdown; equal pages give equal text.

    Pictures are files next to the page, which the Prefect UI cannot open.
    """
    found = " ".join(filter(None, [f"**{page.word}**" if page.word else "", sentence(page.sentence)]))
    sections = [f"# {plain(page.title)}", found, *rendered(page.lead, pictures=pictures)]
    for part in page.parts:
        paragraphs = [] if part.html_only else list(rendered(part.blocks, pictures=pictures))
        sections += [f"## {plain(part.title)}", *paragraphs] if paragraphs else []
    return "\n\n".join(filter(None, sections)) + "\n"


def markdown_table(rows: Sequence[Mapping[str, str]]) -> str:
    """Return a table of equal-keyed rows; `none` without rows."""
    return grid(list(rows[0]), [list(row.values()) for row in rows]) if rows else "none"


def rendered(blocks: Sequence[Block], *, pictures: bool) -> Iterator[str]:
    """Yield the paragraphs of blocks; `pictures` as for `markdown`."""
    for block in blocks:
        if pictures:
            yield from block.markdown()
        elif isinstance(block, Folded):
            yield from replace(block, blocks=[one for one in block.blocks if not isinstance(one, Charts)]).markdown()
        elif not isinstance(block, Charts):
            yield from block.markdown()
