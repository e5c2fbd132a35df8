"""Sphinx tables of contents (toctree) in Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def contents(pages: Iterable[str], caption: str = "") -> str:
    """Return a hidden toctree, which adds pages to the navigation.

    Args:
        pages: Paths without suffix, relative to the page with the toctree.
        caption: Heading in the navigation.
    """
    options = (":hidden:", *((f":caption: {caption}",) if caption else ()))
    return "\n".join(("", ":::{toctree}", *options, "", *pages, ":::", ""))
